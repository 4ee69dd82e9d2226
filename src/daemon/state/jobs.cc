#include "daemon/state/jobs.h"

#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/proc/boot.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "daemon/state/kinds.h"
#include "kymo/scope.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxName = 64;

bool name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

Result<void> check_name(const std::string& name) {
  const bool digits_alone =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name.size() <= kMaxName && !digits_alone && name.front() != '-' && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), name_character)) {
    return {};
  }
  return Error{
      Code::invalid_argument,
      "'" + name +
          "' cannot be the name of a job: a name has at most 64 characters of [A-Za-z0-9_.-], "
          "begins with a letter, a digit or _, and is not a number"};
}

// The name of a program without its folder, as the first part of a job's name: "/usr/bin/sleep"
// gives "sleep".
std::string base_name(const std::string& program) {
  std::string base = program.substr(program.rfind('/') + 1);
  base.resize(std::min(base.size(), kMaxName - 8));
  std::replace_if(
      base.begin(), base.end(), [](char c) { return !name_character(c); }, '_');
  if (base.empty() || base.front() == '.' || base.front() == '-') base.insert(0, "job");
  return base;
}

constexpr std::string_view kIdDigits = "0123456789abcdef";
constexpr std::size_t kIdLength = 13;

std::string new_id() {
  std::random_device random;
  std::string id = "j";  // so that an id is never digits alone, which would look like a pid
  while (id.size() < kIdLength) id += kIdDigits[random() % kIdDigits.size()];
  return id;
}

// A child of kymod that has ended counts as running until exited() is called with its exit status.
bool is_running(const store::Job& job) {
  const Result<probe::Process> seen = probe::read_process(job.pid);
  const bool ours = seen.ok() && seen->parent == getpid() && seen->start_ticks == job.start_ticks &&
                    !probe::is_of_earlier_boot(job.boot_id);
  return ours || life_of(job) != probe::Life::ended;
}

v1::Job::State state_of(store::JobState state) {
  switch (state) {
    case store::JobState::running:
      return v1::Job::RUNNING;
    case store::JobState::dumped:
      return v1::Job::DUMPED;
    case store::JobState::exited:
      return v1::Job::EXITED;
  }
  return v1::Job::STATE_UNSPECIFIED;
}

// Prepares a job for a container. It has no output files, because the runtime keeps the output.
Result<runtime::RunSpec> container_spec(const v1::RunRequest& request, store::Job& job,
                                        const std::string& folder) {
  runtime::RunSpec spec;
  spec.command = job.command;
  spec.container = request.container().empty() ? request.name() : request.container();
  spec.bundle = request.bundle();
  spec.work_dir = folder;
  if (spec.container.empty()) {
    return Error{Code::invalid_argument, "start a container: give its id or its name"};
  }
  if (job.name.empty()) job.name = spec.container;
  job.stdout_path.clear();
  job.stderr_path.clear();
  return spec;
}

void show_container(JobContainers& containers, v1::Job& job) {
  const Result<std::optional<ContainerOf>> container = containers.of(job.id());
  if (!container || !*container) return;
  job.set_runtime(to_api((*container)->kind));
  job.set_container((*container)->id);
}

// A request of kymod stops the process, too. Then only what cannot end counts.
void show_held(pid_t pid, v1::Job& out) {
  if (out.pending().empty()) {
    out.set_held(runtime::what_holds(pid));
  } else if (const pid_t holder = runtime::held_by(pid); holder != 0) {
    out.set_held(runtime::held_text(holder));
  }
}

// A process that a container runtime has started. Until it begins the container's program, which may be after the runtime
// has ended, for example because of hooks, it is runc's own and has runc's command.
Result<probe::Process> read_started(pid_t pid) {
  constexpr std::chrono::seconds kBeginsWithin{3};
  constexpr std::chrono::milliseconds kLookEvery{5};
  const std::vector<std::string> own{"runc", "init"};
  const auto until = std::chrono::steady_clock::now() + kBeginsWithin;
  Result<probe::Process> seen = probe::read_process(pid);
  while (seen && seen->command == own && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookEvery);
    seen = probe::read_process(pid);
  }
  return seen;
}

}  // namespace

std::optional<store::Job> job_with(store::Store& store, const std::string& id,
                                   const runtime::ProcessId& process) {
  Result<store::Job> now = store.job(id);
  const bool same = now && now->pid == process.pid && now->start_ticks == process.start_ticks;
  return same ? std::optional(*std::move(now)) : std::nullopt;
}

bool is_job_id(const std::string& id) {
  return id.size() == kIdLength && id.front() == 'j' &&
         id.find_first_not_of(kIdDigits, 1) == std::string::npos;
}

void give_process(store::Job& job, const runtime::ProcessId& process) {
  job.pid = process.pid;
  job.start_ticks = process.start_ticks;
  job.boot_id = probe::boot_id();
}

probe::Life life_of(const store::Job& job) {
  const probe::Life life = probe::life_of(job.pid, job.start_ticks);
  return life != probe::Life::ended && probe::is_of_earlier_boot(job.boot_id) ? probe::Life::ended
                                                                              : life;
}

v1::Job to_api(const store::Job& job, const std::string& last_checkpoint) {
  v1::Job out;
  out.set_id(job.id);
  out.set_name(job.name);
  out.set_state(state_of(job.state));
  out.set_pid(job.pid);
  for (const std::string& word : job.command) out.add_command(word);
  out.set_created_unix_ns(job.created_unix_ns);
  out.set_stdout_path(job.stdout_path);
  out.set_stderr_path(job.stderr_path);
  out.set_last_checkpoint(last_checkpoint);
  out.set_start_ticks(job.start_ticks);
  if (job.exit_status && WIFEXITED(*job.exit_status)) {
    out.set_exit_code(WEXITSTATUS(*job.exit_status));
  } else if (job.exit_status && WIFSIGNALED(*job.exit_status)) {
    out.set_exit_signal(WTERMSIG(*job.exit_status));
  }
  return out;
}

Jobs::Jobs(store::Store& store, Metrics& metrics, std::string state_dir,
           JobContainers::ProcessOf process_of)
    : store_(store),
      metrics_(metrics),
      state_dir_(std::move(state_dir)),
      containers_(state_dir_, std::move(process_of)) {}

// Puts the job into the store. If it has no name, it gets the first BASE-N that is free.
Result<void> Jobs::reserve(store::Job& job, const std::string& base) {
  if (!job.name.empty()) {
    if (Result<void> good = check_name(job.name); !good) return good;
    Result<void> added = store_.add_job(job);
    if (!added && added.error().code == Code::already_exists) {
      return Error{Code::already_exists,
                   "a job named " + job.name +
                       ": a job with this name exists already (see kymo ps): choose another name"};
    }
    return added;
  }
  for (int n = 1;; ++n) {
    job.name = base + "-" + std::to_string(n);
    Result<void> added = store_.add_job(job);
    if (added || added.error().code != Code::already_exists) return added;
  }
}

// Adds to a stored job what is known of its container only when it runs: the command, and the id,
// by which alone the container is found again when it has another process. `container` has its name.
Result<void> Jobs::store_started_container(store::Job& job, runtime::Runtime& runtime,
                                           ContainerOf container) {
  if (Result<runtime::Container> found = runtime.find(container.id); found) {
    container.id = std::move(found->id);
  }
  if (const Result<probe::Process> seen = read_started(job.pid); seen) {
    job.command = seen->command;
  }
  if (Result<void> ok = containers_.note(job.id, container); !ok) {
    spdlog::error("{}", ok.error().message);  // the container can still be dumped by its own name
  }
  return store_.update_job(job);
}

Result<store::Job> Jobs::run(const runtime::Runtimes& runtimes, const v1::RunRequest& request) {
  const Result<runtime::Kind> kind = kind_of(request.runtime());
  if (!kind) return Error{kind.error().code, "start a job: " + kind.error().message};
  const bool process = !runtime::row_of(*kind).containers;
  if (!runtime::row_of(*kind).has_bundles &&
      (request.command().empty() || request.command(0).empty())) {
    return Error{Code::invalid_argument, "start a job: no command was given"};
  }
  store::Job job;
  job.id = new_id();
  job.name = request.name();
  job.command = {request.command().begin(), request.command().end()};
  job.created_unix_ns = unix_ns();
  const std::string folder = folder_of(job.id);
  job.stdout_path = folder + "/stdout";
  job.stderr_path = folder + "/stderr";
  runtime::RunSpec spec{job.command,
                        {request.environment().begin(), request.environment().end()},
                        request.directory().empty() ? "/" : request.directory(),
                        job.stdout_path,
                        job.stderr_path};
  if (!process) {
    Result<runtime::RunSpec> container = container_spec(request, job, folder);
    if (!container) return container.error();
    spec = std::move(container).value();
  }
  // Store the job before its process starts, so that no process is ever without an entry. Hold the
  // job, because it has no pid yet.
  const Hold held = hold(job.id, Doing::start);
  {
    Scope scope("list job", {.category = "store"});
    if (Result<void> ok = reserve(job, base_name(process ? job.command.front() : spec.container));
        !ok) {
      scope.fail(ok.error().message);
      return ok.error();
    }
  }
  Scope starting("start process", {.category = "runtime"});
  Result<void> folder_made = make_job_folder(folder);
  Result<runtime::ProcessId> started =
      folder_made ? runtimes.of(*kind).run(spec) : Result<runtime::ProcessId>(folder_made.error());
  if (!started) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (Result<void> ok = store_.remove_job(job.id, true); !ok)
      spdlog::error("{}", ok.error().message);
    starting.fail(started.error().message);
    return started.error();
  }
  starting.end();
  Scope updating("update job", {.category = "store"});
  give_process(job, *started);
  Result<void> stored = store_.update_job(job);
  if (stored && !process) {
    stored = store_started_container(job, runtimes.of(*kind), {*kind, spec.container});
  }
  if (!stored) {
    updating.fail(stored.error().message);
    return stored.error();
  }
  return job;
}

Result<store::Job> Jobs::adopt(const runtime::ProcessId& process, const std::string& name) {
  const Result<probe::Process> seen = probe::read_process(process.pid);
  if (!seen) return seen.error();
  store::Job job;
  job.id = new_id();
  job.name = name;
  job.command = seen->command;
  give_process(job, process);
  job.created_unix_ns = unix_ns();
  if (Result<void> ok = reserve(job, base_name(seen->name)); !ok) return ok.error();
  return job;
}

Result<store::Job> Jobs::take_over(store::Job job) {
  const std::string name = std::exchange(job.name, {});
  const std::string program = job.command.empty() ? "" : job.command.front();
  const bool possible = !name.empty() && check_name(name).ok();
  job.state = store::JobState::dumped;
  job.created_unix_ns = unix_ns();
  if (possible && !store_.job(name)) job.name = name;
  if (Result<void> ok = reserve(job, base_name(possible ? name : program)); !ok) return ok.error();
  return job;
}

Result<store::Job> Jobs::find(const std::string& id_or_name) {
  Result<store::Job> job = store_.job(id_or_name);
  if (!job && job.error().code == Code::not_found) {
    return Error{Code::not_found, "no job is named " + id_or_name + ": kymo ps lists the jobs"};
  }
  return job;
}

std::optional<store::Job> Jobs::of_process(const runtime::ProcessId& process) {
  for (const store::Job& job : store_.jobs()) {
    if (job.state == store::JobState::running && job.pid == process.pid &&
        job.start_ticks == process.start_ticks && !probe::is_of_earlier_boot(job.boot_id)) {
      return job;
    }
  }
  return std::nullopt;
}

std::optional<store::Job> Jobs::of_container(const ContainerOf& container) {
  std::vector<store::Job> jobs = store_.jobs();
  const auto is_it = [&](const store::Job& job) {
    const Result<std::optional<ContainerOf>> its = containers_.of(job.id);
    return its && *its && **its == container;
  };
  const auto found = std::find_if(jobs.rbegin(), jobs.rend(), is_it);
  return found == jobs.rend() ? std::nullopt : std::optional(std::move(*found));
}

Result<void> Jobs::remove(const store::Job& job) {
  Result<void> removed = store_.remove_job(job.id);
  if (removed) containers_.forget(job.id);
  return removed;
}

v1::Job Jobs::view(const store::Job& job, const std::string& last_checkpoint) {
  v1::Job out = to_api(job, last_checkpoint);
  show_container(containers_, out);
  return out;
}

std::vector<v1::Job> Jobs::list() {
  refresh();
  std::map<std::string, std::string> last;  // the newest directory: the list is oldest first
  std::map<std::string, std::string> failure;
  std::map<std::string, const store::Checkpoint*>
      open;  // of the newest dump; null: its outcome is known
  const std::vector<store::Checkpoint> checkpoints = store_.checkpoints();
  for (const store::Checkpoint& checkpoint : checkpoints) {
    const bool failed = checkpoint.state == store::CheckpointState::failed ||
                        checkpoint.state == store::CheckpointState::unconfirmed;
    if (checkpoint.state == store::CheckpointState::complete) {
      last[checkpoint.job_id] = checkpoint.directory;
    }
    failure[checkpoint.job_id] = failed ? checkpoint.error : "";
    const bool is_open = checkpoint.state == store::CheckpointState::started ||
                         checkpoint.state == store::CheckpointState::unconfirmed;
    open[checkpoint.job_id] = is_open ? &checkpoint : nullptr;
  }
  std::vector<v1::Job> out;
  for (const store::Job& job : store_.jobs()) {
    out.push_back(view(job, last[job.id]));
    out.back().set_last_failure(failure[job.id]);
    show_pending(job, open[job.id], out.back());
    if (const std::string why = why_not_known(job.id);
        !why.empty() && out.back().pending().empty()) {
      out.back().set_pending("not known whether it was started or restored meanwhile: " + why);
    }
    if (job.state == store::JobState::running && job.pid > 0) {
      out.back().set_frozen(runtime::is_frozen(job.pid));
      show_held(job.pid, out.back());
    }
  }
  return out;
}

Jobs::Hold Jobs::hold(const std::string& id, Doing doing) {
  const std::lock_guard lock(mutex_);
  Holding& held = held_[id];
  ++held.times;
  held.doing = doing;
  return {this, id};
}

std::optional<Jobs::Doing> Jobs::doing_with(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto held = held_.find(id);
  return held == held_.end() ? std::nullopt : std::optional(held->second.doing);
}

std::string Jobs::why_not_known(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = not_known_.find(id);
  return found == not_known_.end() ? std::string() : found->second;
}

// Says what goes on with a job at this moment. While a dump holds it, the store still says that it runs. `open`: the
// job's newest dump, if its outcome is not known; otherwise null.
void Jobs::show_pending(const store::Job& job, const store::Checkpoint* open, v1::Job& out) {
  const std::optional<Doing> doing = doing_with(job.id);
  if (doing == Doing::restore) out.set_pending("it is being restored");
  if (doing == Doing::cut_short_restore) {
    out.set_pending("kymod stopped while it was restored, and something may still restore it");
  }
  const bool ended = job.pid > 0 && life_of(job) == probe::Life::ended;
  const bool in_memory = ended && open != nullptr && open->pid == job.pid &&
                         runtime::whole_in_memory(runtime::find_memory_images(open->id));
  const std::string where = in_memory
                                ? "its whole images are only in memory, because the disk of " +
                                      open->directory + " has not taken them yet"
                                : "its images are not all on their disk yet";
  if (doing == Doing::dump) {
    const bool in_dump = ended && job.state == store::JobState::running;
    if (in_dump) out.set_state(v1::Job::DUMPING);
    out.set_pending("it is being dumped" +
                    (in_dump ? "; its process has ended, and " + where : std::string()));
  } else if (!doing && in_memory) {
    out.set_pending(where);
  }
}

void Jobs::release(const std::string& id) noexcept {
  const Scope scope("look after jobs", {.category = "store"});
  try {
    {
      const std::lock_guard lock(mutex_);
      const auto held = held_.find(id);
      if (held != held_.end() && --held->second.times == 0) {
        const std::optional<Ended> ended = held->second.ended;
        held_.erase(held);
        if (ended) note_end(*ended);
        for (const Ended& early : std::exchange(early_ends_, {})) note_end(early);
      }
    }
    refresh();
  } catch (...) {  // out of memory: the next refresh(), a second later, tries again
  }
}

void Jobs::exited(const runtime::ProcessId& process, int wait_status) {
  {
    const std::lock_guard lock(mutex_);
    note_end({process, wait_status});
  }
  refresh();
}

// Stores how a process ended, or keeps that until the job that has it, or will have it, is no longer held. The caller
// holds mutex_.
void Jobs::note_end(const Ended& ended) {
  if (const std::optional<store::Job> job = of_process(ended.process); !job) {
    if (is_any_started()) early_ends_.push_back(ended);
  } else if (const auto held = held_.find(job->id); held != held_.end()) {
    held->second.ended = ended;
  } else {
    mark_exited(*job, ended.wait_status);
  }
}

// Whether a job is being given a process, which it may not have in the store yet. The caller holds mutex_.
bool Jobs::is_any_started() const {
  return std::any_of(held_.begin(), held_.end(), [](const auto& held) {
    return held.second.doing == Doing::start || held.second.doing == Doing::restore;
  });
}

void Jobs::retry_unstored() {
  const std::size_t left = store_.unstored();
  if (left == unstored_) return;
  unstored_ = left;
  if (left == 0) {
    spdlog::info("the state directory takes changes again: everything is stored");
  } else {
    spdlog::error(
        "{}: until its disk takes changes again, {} changes are kept only in memory, and they are "
        "lost if kymod stops",
        store_.trouble(), left);
  }
}

void Jobs::refresh() {
  const std::lock_guard lock(mutex_);
  std::uint64_t running = 0;
  not_known_.clear();
  for (const store::Job& job : store_.jobs()) {
    const bool ran = job.state == store::JobState::running;
    const bool is_held = held_.count(job.id) != 0;
    if ((ran && is_running(job)) || (!is_held && follow_container(job))) {
      ++running;
    } else if (ran && !is_held) {
      mark_exited(job, std::nullopt);
    }
  }
  metrics_.set_processes_managed(running);
}

// If the container of this job runs, updates the job with its process and returns true. If several
// jobs have this container, that applies only to the newest job.
bool Jobs::follow_container(store::Job job) {
  const Result<std::optional<runtime::ProcessId>> process = containers_.process_of(job.id);
  if (!process) not_known_[job.id] = process.error().message;
  if (!process || !*process) return false;
  const Result<std::optional<ContainerOf>> container = containers_.of(job.id);
  const std::optional<store::Job> newest = of_container(**container);
  if (!newest || newest->id != job.id) return false;
  give_process(job, **process);
  job.state = store::JobState::running;
  job.exit_status.reset();
  store_.note_job(job);
  spdlog::info("job {} runs again as pid {}: its container was started or restored", job.name,
               job.pid);
  return true;
}

void Jobs::mark_exited(store::Job job, std::optional<int> wait_status) {
  job.state = store::JobState::exited;
  job.exit_status = wait_status;
  store_.note_job(job);
  spdlog::info("job {} (pid {}) has ended", job.name, job.pid);
}

}  // namespace kymo::daemon
