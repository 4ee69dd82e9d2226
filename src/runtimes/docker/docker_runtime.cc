#include "runtimes/docker/docker_runtime.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/patience.h"
#include "kymo/scope.h"
#include "probe/process.h"
#include "runtime/aftermath.h"
#include "runtime/command.h"
#include "runtime/container_calls.h"
#include "runtime/container_end.h"
#include "runtime/criu_choice.h"
#include "runtime/freezer.h"
#include "runtime/killed_restore.h"
#include "runtime/option_checks.h"
#include "runtime/process_checks.h"
#include "runtime/proved_dump.h"
#include "runtime/rehearsal.h"
#include "runtime/scratch.h"
#include "runtime/server.h"
#include "runtimes/docker/docker_client.h"
#include "runtimes/docker/docker_images.h"
#include "runtimes/docker/docker_server.h"
#include "runtimes/docker/docker_shim.h"
#include "runtimes/docker/docker_thaw.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char kDumpLog[] = "/dump.log";
constexpr char kDumpStats[] = "/stats-dump";
constexpr char kRestoreLog[] = "/restore.log";
constexpr char kRestoreStats[] = "/stats-restore";
constexpr std::chrono::milliseconds kAnswersSoon{200};  // for what is asked every second
// What kymod makes in Docker's folder of the container's checkpoints, during a restore.
constexpr char kOurFolder[] = "kymo-restore";
constexpr char kImagesLink[] = "checkpoint-";
constexpr char kWorkLink[] = "/criu-work";

class DockerRuntime : public Runtime {
 public:
  explicit DockerRuntime(DockerRuntimeOptions options) : options_(options) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& container) override;
  std::optional<ProcessId> process_of(const std::string& id) override;
  [[nodiscard]] bool is_silent() const override {
    return std::chrono::steady_clock::now() < hangs_until_.load(std::memory_order_relaxed);
  }
  Result<std::optional<CriuProgram>> fixed_criu() override;
  Result<void> may_dump(const DumpSpec& spec) override;
  Result<void> may_restore(const RestoreSpec& spec) override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<void> settle_dump(const DumpSpec& spec) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;
  Result<void> rehearse(const RehearsalSpec& spec) override;
  Result<bool> settle_restore(const RestoreSpec& spec, std::int64_t) override;
  Result<std::string> freeze(const FreezeSpec& spec) override;
  Result<std::string> unfreeze(const FreezeSpec& spec) override;

 private:
  [[nodiscard]] Result<void> check_experimental(const std::string& tried) const;
  // What Docker does of a dump. `ran_on`: it was being stopped, and has run after its images were made.
  [[nodiscard]] Result<CommandOutcome> dump_by_docker(const DumpSpec& spec,
                                                      const Observer& observer,
                                                      const Command& limits, bool& ran_on) const;
  [[nodiscard]] Result<CommandOutcome> try_to_dump(const DumpSpec& spec, const Observer& observer,
                                                   const Command& limits, bool& ran_on) const;
  [[nodiscard]] Result<CommandOutcome> make_images(const DumpSpec& spec,
                                                   const Command& limits) const;
  void let_run(const DumpSpec& spec) const;
  [[nodiscard]] Result<void> end_dumped(const DumpSpec& spec, bool ran_on) const;
  [[nodiscard]] Result<CommandOutcome> restore_by_docker(const RestoreSpec& spec,
                                                         const std::string& folder,
                                                         const Command& limits) const;
  void end_late_restore(const std::string& id) const;

  DockerRuntimeOptions options_;
  DockerClient client_;
  // process_of() does not ask a Docker that did not answer again before this time.
  std::atomic<std::chrono::steady_clock::time_point> hangs_until_{};
};

// The first characters of an id, as many as Docker shows.
std::string shown(const std::string& id) {
  constexpr std::size_t kShown = 12;
  constexpr std::size_t kWholeId = 64;
  return id.size() == kWholeId ? id.substr(0, kShown) : id;
}

// Returns why docker run failed, from what it printed. It also prints how it looked for the image.
std::string reason_of_run(const std::string& errors) {
  constexpr std::string_view kProgram = "docker: ";
  constexpr std::string_view kDaemon = "Error response from daemon: ";
  std::size_t at = errors.starts_with(kProgram) ? 0 : errors.find("\n" + std::string(kProgram));
  if (at == std::string::npos) return errors.substr(0, errors.find('\n'));
  at = errors.find(kProgram, at) + kProgram.size();
  std::string why = errors.substr(at, errors.find('\n', at) - at);
  return why.starts_with(kDaemon) ? why.substr(kDaemon.size()) : why;
}

// Returns a call with what a checkpoint and a restore have in common.
ContainerCall call_of(const std::string& tried, const std::string& images_dir) {
  ContainerCall call;
  call.runtime = "docker";
  call.tried = tried;
  call.images_dir = images_dir;
  call.reason = [](const CommandOutcome& outcome) { return last_line(outcome.errors); };
  return call;
}

Error absent_or(const std::string& tried, const std::string& absent, const Error& error) {
  return Error{error.code, tried + ": " + (error.code == Code::not_found ? absent : error.message)};
}

Result<ProcessId> DockerRuntime::run(const RunSpec& spec) {
  const std::string tried = "run container " + spec.container;
  if (const Result<bool> answers = client_.experimental(); !answers) {
    return Error{answers.error().code, tried + ": " + answers.error().message};
  }
  const std::string id_file = spec.work_dir + "/docker-id";
  forget(id_file);
  Command command;
  command.words = {"docker", "--host",   "unix://" + client_.socket(),
                   "run",    "--detach", "--cidfile",
                   id_file,  "--name",   spec.container};
  command.words.insert(command.words.end(), spec.command.begin(), spec.command.end());
  command.environment = environment_with_path("");
  command.timeout = options_.timeout;
  const Result<CommandOutcome> done = run_command(command);
  const Result<std::string> id = read_file(id_file);
  if (done && done->exit_status == 0) {
    const Result<Container> container = find(id ? last_line(*id) : spec.container);
    return container ? Result<ProcessId>(container->process) : container.error();
  }
  if (id && !id->empty()) {  // Docker made the container before it failed
    command.words = {"docker", "--host",  "unix://" + client_.socket(),
                     "rm",     "--force", last_line(*id)};
    static_cast<void>(run_command(command).ok());
  }
  if (!done) return Error{done.error().code, tried + ": " + done.error().message};
  const std::string why = reason_of_run(done->errors);
  const bool taken = why.find("is already in use") != std::string::npos;
  return Error{taken ? Code::already_exists : Code::failed_precondition, tried + ": " + why};
}

Result<Container> DockerRuntime::find(const std::string& container) {
  const std::string tried = "container " + container;
  const Result<DockerContainer> seen = client_.container(container);
  if (!seen) {
    return absent_or(tried, "Docker has no container of that name or id (docker ps -a shows them)",
                     seen.error());
  }
  if (seen->pid == 0) {
    return Error{Code::failed_precondition, tried + ": it is not running (it is " + seen->status +
                                                "): use docker start " + container};
  }
  Container found;
  found.id = seen->id;
  found.name = container;
  found.process = identify(seen->pid);
  found.bundle = bundle_of_shim(seen->pid);
  if (const auto process = probe::read_process(seen->pid); process) {
    found.command = process->command;
  }
  const Result<Freezer> freezer = Freezer::of(seen->pid);
  found.frozen = freezer && freezer->frozen();
  found.read_only_root = has_read_only_root(seen->pid);
  return found;
}

std::optional<ProcessId> running(const Result<DockerContainer>& seen) {
  if (!seen || seen->pid == 0) return std::nullopt;
  const ProcessId process = identify(seen->pid);
  return process.start_ticks == 0 ? std::nullopt : std::optional(process);
}

std::optional<ProcessId> DockerRuntime::process_of(const std::string& id) {
  // kymod calls this every second for each job whose container does not run. Docker also does not
  // answer about a container while it starts or restores it.
  constexpr std::chrono::seconds kLeftAlone{2};
  using std::chrono::steady_clock;
  if (steady_clock::now() < hangs_until_.load(std::memory_order_relaxed)) return std::nullopt;
  const Result<DockerContainer> seen = client_.container(id, kAnswersSoon);
  if (!seen && seen.error().code == Code::deadline_exceeded) {
    hangs_until_.store(steady_clock::now() + kLeftAlone, std::memory_order_relaxed);
  }
  return seen && seen->id == id ? running(seen) : std::nullopt;
}

Result<void> DockerRuntime::rehearse(const RehearsalSpec& spec) {
  const std::string tried = "could not restore container " + shown(name_of_container(spec));
  const Result<DockerContainer> seen = client_.container(spec.container);
  if (!seen) return absent_or(tried, "Docker no longer has this container", seen.error());
  if (seen->pid == 0) return not_rehearsable(tried, "Docker");
  RehearsalSpec here = spec;
  here.bundle = bundle_of_shim(seen->pid);
  here.container_name = shown(name_of_container(spec));
  return rehearse_by_runc(here, "", options_.timeout);
}

// As long as Docker does not answer, it is not known whether the container runs.
Result<bool> DockerRuntime::settle_restore(const RestoreSpec& spec, std::int64_t) {
  if (is_being_restored(spec.container)) return false;
  const Result<DockerContainer> seen = client_.container(spec.container, kAnswersSoon);
  if (!seen && seen.error().code != Code::not_found) return false;
  hangs_until_.store({}, std::memory_order_relaxed);
  return true;
}

Result<std::optional<CriuProgram>> DockerRuntime::fixed_criu() {
  const Result<std::string> path = path_of_dockers_containerd(client_);
  if (!path) return path.error();
  Result<CriuProgram> program = criu_of_server("Docker's containerd", *path);
  if (!program) return program.error();
  return std::optional(std::move(program).value());
}

Result<void> check_options(const std::string& tried, const CheckpointOptions& options) {
  return refuse_options(tried, options, {}, {}, "Docker has no way to pass it on to CRIU");
}

Result<void> DockerRuntime::check_experimental(const std::string& tried) const {
  const Result<bool> experimental = client_.experimental();
  if (!experimental) {
    return Error{experimental.error().code, tried + ": " + experimental.error().message};
  }
  if (*experimental) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": Docker has checkpoints only with its experimental features: put "
                   "{\"experimental\": true} into /etc/docker/daemon.json and restart Docker"};
}

Result<void> DockerRuntime::may_dump(const DumpSpec& spec) {
  const std::string tried = "dump container " + shown(name_of_container(spec));
  if (Result<void> good = check_options(tried, spec.options); !good) return good;
  if (spec.pre_dumps != 0) {
    return Error{Code::invalid_argument, tried + ": --pre-dump: Docker has no call that makes one"};
  }
  if (const auto process = check_target(spec); !process) return process.error();
  if (Result<void> good = check_experimental(tried); !good) return good;
  const Result<DockerContainer> seen = client_.container(spec.container);
  if (!seen) return absent_or(tried, "Docker no longer has this container", seen.error());
  if (seen->auto_remove && !spec.leave_running) {
    return Error{Code::failed_precondition,
                 tried +
                     ": it was started with --rm, so Docker would remove it and it could not be "
                     "restored: use --leave-running, or start it without --rm"};
  }
  return {};
}

// Lets a container run on after its dump, unless it was frozen before: then CRIU may have unfrozen
// it, and it is frozen again. If Docker does not answer, the caller unfreezes the container.
void DockerRuntime::let_run(const DumpSpec& spec) const {
  if (!probe::process_lives(spec.process.pid, spec.process.start_ticks)) return;
  const Scope scope("let it run on", {.category = "runtime"});
  if (!spec.frozen) {
    static_cast<void>(unpause_in_docker(client_, spec.container, spec.process).ok());
    return;
  }
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (freezer && !freezer->frozen()) static_cast<void>(freezer->set(true).ok());
}

// Ends a container that is dumped and frozen. No process of it runs again: each gets its SIGKILL
// before Docker unfreezes the container. Docker's own SIGKILL is only for the first process. The
// call is still made, because then Docker does not start the container again by its restart policy.
// `ran_on`: another program stops it, so it is not frozen, and Docker knows that it was stopped.
Result<void> DockerRuntime::end_dumped(const DumpSpec& spec, bool ran_on) const {
  const Scope scope("end it", {.category = "runtime"});
  if (probe::life_of(spec.process.pid, spec.process.start_ticks) != probe::Life::runs) return {};
  for (const pid_t pid : probe::process_tree(spec.process.pid)) ::kill(pid, SIGKILL);
  if (ran_on) return {};  // docker restart may have started it again
  Result<void> ended = client_.kill(spec.container);
  if (const auto freezer = Freezer::of(spec.process.pid); freezer && freezer->frozen()) {
    static_cast<void>(freezer->set(false).ok());  // Docker did not do it
  }
  return ended;
}

Result<CommandOutcome> DockerRuntime::make_images(const DumpSpec& spec,
                                                  const Command& limits) const {
  std::optional<DockerThaw> thaw;
  if (spec.leave_running && !spec.frozen && !spec.prove) {
    thaw.emplace(client_, spec.container, spec.process, spec.work_dir + kDumpLog);
  }
  // Docker goes on when CRIU has ended. It fails if the folder is gone into which it unpacks. The
  // folder is renamed and not emptied, so that Docker cannot succeed with a part of the images.
  bool ended = false;  // for the thread of this call
  Command ending = limits;
  ending.time_over = [&](pid_t session) {
    const std::optional<bool> renamed = within(kDiskPatience, [folder = spec.images_dir] {
      std::error_code error;
      fs::rename(fs::path(folder) / kDockersFolder, fs::path(folder) / kEndedFolder, error);
      return !error;
    });
    // If the disk has not answered, the folder is renamed when it answers.
    ended = ended || renamed.value_or(true);
    return limits.time_over(session);
  };
  Result<CommandOutcome> done =
      client_.checkpoint(spec.container, spec.images_dir, kDockersFolder, ending);
  if (!done || done->exit_status != 0) return done;
  if (ended) {
    return Error{is_asked(limits.cancel) ? Code::cancelled : Code::deadline_exceeded,
                 "it was ended"};
  }
  const Result<void> taken = take_images(spec.images_dir, limits);
  return taken ? done : taken.error();
}

Result<CommandOutcome> DockerRuntime::try_to_dump(const DumpSpec& spec, const Observer& observer,
                                                  const Command& limits, bool& ran_on) const {
  const DockerDumpFiles files(spec.process.pid, spec.work_dir);
  if (!spec.frozen) {
    const Scope scope("pause it", {.category = "runtime"});
    const std::uint64_t from_ns = monotonic_ns();
    if (Result<void> paused = client_.pause(spec.container); !paused) {
      let_run(spec);
      return paused.error();
    }
    if (observer.paused) observer.paused(from_ns, monotonic_ns());
  }
  const auto paused_at = std::chrono::system_clock::now();
  Result<CommandOutcome> done = make_images(spec, limits);
  if (done && done->exit_status == 0) {
    if (Result<void> proved = prove(spec); !proved) done = proved.error();
  }
  if (done && done->exit_status == 0 && !spec.leave_running) {
    const Pause pause = pause_since(client_, spec.container, spec.process, paused_at);
    ran_on = pause == Pause::ended;
    // Its end would lose what it has done since its images were made.
    if (pause == Pause::undone) {
      done = Error{Code::failed_precondition,
                   "another program unpaused it during its dump, so it ran on after its images "
                   "were made"};
    }
  }
  if (!done || done->exit_status != 0) {
    let_run(spec);
    remove_folders(spec.images_dir);
  } else if (spec.leave_running) {
    let_run(spec);
  }
  return done;
}

// With each dump, containerd 1.6 stores the specification of the container under its checksum, and
// refuses to store what it already has. The specification of the last dump stays there until
// containerd collects its garbage: a second later, or some seconds later on a busy machine.
bool was_stored_already(const Result<CommandOutcome>& done) {
  return done && done->exit_status != 0 &&
         done->errors.find(": content sha256:") != std::string::npos &&
         done->errors.find(": already exists") != std::string::npos;
}

// The container runs on while it waits for containerd.
Result<CommandOutcome> DockerRuntime::dump_by_docker(const DumpSpec& spec, const Observer& observer,
                                                     const Command& limits, bool& ran_on) const {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  constexpr milliseconds kCollectsWithin{15'000};
  constexpr milliseconds kTryEvery{500};
  const auto begun = steady_clock::now();
  Command left = limits;
  for (;;) {
    Result<CommandOutcome> done = try_to_dump(spec, observer, left, ran_on);
    if (!was_stored_already(done)) return done;
    const auto passed = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun);
    const milliseconds most =
        limits.timeout.count() == 0 ? kCollectsWithin : std::min(limits.timeout, kCollectsWithin);
    if (passed + kTryEvery >= most) return done;
    if (limits.timeout.count() != 0) left.timeout = limits.timeout - passed - kTryEvery;
    const Scope scope("wait for containerd", {.category = "runtime"});
    pollfd asked{fd_of(limits.cancel), POLLIN, 0};
    static_cast<void>(::poll(&asked, 1, static_cast<int>(kTryEvery.count())));
    if (is_asked(limits.cancel)) return Error{Code::cancelled, "it was ended"};
    forget(spec.work_dir + kDumpLog);  // of the dump that failed
    forget(spec.work_dir + kDumpStats);
  }
}

Result<DumpOutcome> DockerRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  if (Result<void> good = may_dump(spec); !good) return good.error();
  ContainerCall checkpoint =
      call_of("could not dump container " + shown(name_of_container(spec)), spec.images_dir);
  checkpoint.command.timeout = options_.timeout;
  checkpoint.log_path = spec.work_dir + kDumpLog;
  checkpoint.stats_path = spec.work_dir + kDumpStats;
  Result<void> ended;
  bool ran_on = false;
  checkpoint.run = [&](const Command& limits) {
    Result<CommandOutcome> done = dump_by_docker(spec, observer, limits, ran_on);
    if (done && done->exit_status == 0 && !spec.leave_running) {
      ended = end_dumped(spec, ran_on);
    }
    return done;
  };
  Result<DumpOutcome> outcome = dump_container(spec, std::move(checkpoint), observer);
  if (outcome && ran_on) {
    outcome->warnings.emplace_back(
        "another program stopped the container during its dump: it ran on after its images were "
        "made, and they do not have what it did since");
  }
  if (outcome && !ended) {
    outcome->warnings.push_back("Docker was not told that container " +
                                shown(name_of_container(spec)) +
                                " ended for its dump: " + ended.error().message);
  }
  return outcome;
}

Result<void> DockerRuntime::settle_dump(const DumpSpec& spec) {
  std::vector<pid_t> tree;
  if (probe::process_lives(spec.process.pid, spec.process.start_ticks)) {
    tree = probe::process_tree(spec.process.pid);
  }
  const std::vector<std::string> logs = in_work_dirs(spec, kDumpLog);
  for (const std::string& log : logs) end_container_dump(log, tree, {});
  let_run(spec);
  const bool ended =
      probe::life_of(spec.process.pid, spec.process.start_ticks) == probe::Life::ended;
  // If Docker still writes there, it fails, and removes what it has written.
  if (!ended || !keep_images(spec.images_dir)) remove_folders(spec.images_dir);
  return settle_container_dump(spec, logs);
}

Error runs_already(const std::string& tried) {
  return Error{Code::already_exists, tried + ": it runs: use docker stop, or restore it later"};
}

Result<void> DockerRuntime::may_restore(const RestoreSpec& spec) {
  const std::string tried = "restore container " + shown(name_of_container(spec));
  if (Result<void> good = check_options(tried, spec.options); !good) return good;
  if (Result<void> good = check_experimental(tried); !good) return good;
  const Result<DockerContainer> seen = client_.container(spec.container);
  if (!seen) {
    return absent_or(tried,
                     "Docker no longer has it; a checkpoint can be restored only into its own "
                     "container, so that container must not be removed",
                     seen.error());
  }
  return seen->pid == 0 ? Result<void>() : runs_already(tried);
}

// containerd stores the images under the checksum of their tar file, and refuses to store what it
// already has. It may still have the tar file of the dump. So each restore changes the time of a
// file that only Docker reads. The tar file has whole seconds.
void change_checksum(const std::string& images_dir) {
  const fs::path file = fs::path(images_dir) / "descriptors.json";
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (!error) fs::last_write_time(file, time + std::chrono::seconds(1), error);
}

Result<CommandOutcome> DockerRuntime::restore_by_docker(const RestoreSpec& spec,
                                                        const std::string& folder,
                                                        const Command& limits) const {
  // Docker restores only what is below its folder of the container's checkpoints.
  const fs::path images(spec.images_dir);
  // The name is new each time: if an upload was cut short, because Docker or its containerd was killed, containerd would
  // append the next one of the same name to it ("invalid tar header").
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string link = kImagesLink + std::to_string(now.count());
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::create_directory_symlink(images.parent_path(), folder + "/" + link, error);
  if (error) return system_error("make " + folder, error.value());
  if (!within(kDiskPatience, [images_dir = spec.images_dir] {
        change_checksum(images_dir);
        return true;
      })) {
    return Error{Code::unavailable,
                 "the disk of " + spec.images_dir + " does not answer; nothing was restored"};
  }
  DockerRestoreFiles files(spec.container, folder + kWorkLink);
  Result<CommandOutcome> done = client_.start(
      spec.container, (fs::path(kOurFolder) / link / images.filename()).string(), limits);
  files.finish(spec.work_dir);
  const bool given_up = !done && (done.error().code == Code::deadline_exceeded ||
                                  done.error().code == Code::cancelled);
  if (given_up) end_late_restore(spec.container);
  static_cast<void>(within(kDiskPatience, [client = client_, images_dir = spec.images_dir] {
    remove_copies(client, images_dir);
    return true;
  }));
  return done;
}

// Ends the container if Docker has restored it although kymod gave up the call to restore it. Docker
// answers when its restore is over. That can take long if its CRIU waits for a disk. But such a CRIU
// has been killed by now, so it restores nothing.
void DockerRuntime::end_late_restore(const std::string& id) const {
  constexpr std::chrono::seconds kRestoresWithin{5};
  const auto until = std::chrono::steady_clock::now() + kRestoresWithin;
  while (std::chrono::steady_clock::now() < until) {
    const Result<DockerContainer> seen = client_.container(id, kRestoresWithin);
    if (seen && seen->pid != 0) static_cast<void>(client_.kill(id).ok());
    if (seen || seen.error().code != Code::deadline_exceeded) return;
  }
}

Result<RestoreOutcome> DockerRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  if (Result<void> good = may_restore(spec); !good) return good.error();
  const std::string tried = "could not restore container " + shown(name_of_container(spec));
  const Result<std::string> root = client_.data_root();
  if (!root) return Error{root.error().code, tried + ": " + root.error().message};
  const std::string folder = *root + "/containers/" + spec.container + "/checkpoints/" + kOurFolder;
  ContainerCall restore = call_of(tried, spec.images_dir);
  restore.command.timeout = options_.timeout;
  restore.log_path = spec.work_dir + kRestoreLog;
  restore.growing_log = folder + kWorkLink + kRestoreLog;
  restore.says_taken = kSoAlready;
  restore.stats_path = spec.work_dir + kRestoreStats;
  restore.cgroups = {spec.container, "docker-" + spec.container + ".scope"};
  if (Result<void> removed =
          remove_killed_restore(spec.container, "/run/docker/runtime-runc/moby/" + spec.container,
                                restore.cgroups, spec.work_dir);
      !removed) {
    return Error{removed.error().code, tried + ": " + removed.error().message};
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);  // left by a kymod that was killed
  restore.run = [&](const Command& limits) { return restore_by_docker(spec, folder, limits); };
  Result<RestoreOutcome> outcome = restore_container(spec, std::move(restore), observer);
  fs::remove_all(folder, ignored);
  // Somebody else has started it since may_restore().
  if (!outcome && outcome.error().code == Code::already_exists) return runs_already(tried);
  if (!outcome) return outcome;
  const std::optional<ProcessId> process = running(client_.container(spec.container));
  if (!process) return Error{Code::failed_precondition, tried + ": it ended at once"};
  outcome->process = *process;
  return outcome;
}

Result<std::string> DockerRuntime::freeze(const FreezeSpec& spec) {
  return freeze_container(spec, true, "Docker's pause",
                          [&] { return client_.pause(spec.container); });
}

Result<std::string> DockerRuntime::unfreeze(const FreezeSpec& spec) {
  // Docker may take it for paused although it is not frozen, if kymod had to unfreeze it while
  // Docker did not answer.
  const auto seen = client_.container(spec.container);
  if (const auto freezer = Freezer::of(spec.process.pid);
      seen && seen->paused && freezer && !freezer->frozen()) {
    static_cast<void>(freezer->set(true).ok());
  }
  return freeze_container(spec, false, "Docker's unpause",
                          [&] { return client_.unpause(spec.container); });
}

}  // namespace

std::unique_ptr<Runtime> make_docker_runtime(DockerRuntimeOptions options) {
  return std::make_unique<DockerRuntime>(options);
}

Result<OciRuntime> oci_runtime_of_docker() {
  const Result<std::string> path = path_of_dockers_containerd(DockerClient());
  if (!path) return path.error();
  return OciRuntime{"runc", on_path("runc", *path), *path};
}

}  // namespace kymo::runtime
