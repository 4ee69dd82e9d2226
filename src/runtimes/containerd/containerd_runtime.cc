#include "runtimes/containerd/containerd_runtime.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "kymo/scope.h"
#include "preflight/host_names.h"
#include "probe/process.h"
#include "runtime/aftermath.h"
#include "runtime/command.h"
#include "runtime/container_calls.h"
#include "runtime/container_end.h"
#include "runtime/container_processes.h"
#include "runtime/criu_choice.h"
#include "runtime/freezer.h"
#include "runtime/killed_restore.h"
#include "runtime/option_checks.h"
#include "runtime/process_checks.h"
#include "runtime/proved_dump.h"
#include "runtime/rehearsal.h"
#include "runtime/scratch.h"
#include "runtime/server.h"
#include "runtimes/containerd/containerd_client.h"

namespace kymo::runtime {
namespace {

constexpr char kDumpLog[] = "/dump.log";
constexpr char kRestoreLog[] = "/restore.log";
constexpr std::chrono::milliseconds kStopsWithin{5000};
constexpr std::chrono::milliseconds kStopLookEvery{10};
constexpr std::chrono::milliseconds kDeletesWithin{2000};
constexpr std::chrono::milliseconds kAnswersSoon{200};  // for what is asked every second

class ContainerdRuntime : public Runtime {
 public:
  explicit ContainerdRuntime(ContainerdRuntimeOptions options) : options_(options) {}

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
  [[nodiscard]] Result<void> forget_stopped(const ContainerdName& name) const;
  [[nodiscard]] Result<CommandOutcome> make_images(const DumpSpec& spec, const ContainerdName& name,
                                                   bool leave_running, const Command& limits) const;
  [[nodiscard]] Result<CommandOutcome> dump_proved(const DumpSpec& spec, const ContainerdName& name,
                                                   const Observer& observer,
                                                   const Command& limits) const;
  void let_run(const DumpSpec& spec, const ContainerdName& name) const;

  ContainerdRuntimeOptions options_;
  ContainerdClient client_;
  // If containerd did not answer, process_of() does not ask it again before this time.
  std::atomic<std::chrono::steady_clock::time_point> hangs_until_{};
};

// Adds to an error of containerd what mends it. If containerd's disk failed when a container ended, containerd keeps a
// folder of the container, and refuses to start it again.
std::string with_remedy(std::string message) {
  if (message.find("failed to start shim: mkdir ") != std::string::npos &&
      message.find(": file exists") != std::string::npos) {
    message +=
        ": containerd has not removed this folder when the container ended: restart containerd, "
        "which removes it "
        "and lets the running containers go on, and restore it again";
  }
  return message;
}

// Returns a call with what a checkpoint and a restore have in common.
ContainerCall call_of(const std::string& tried) {
  ContainerCall call;
  call.runtime = "containerd";
  call.tried = tried;
  call.reason = [](const CommandOutcome& outcome) { return last_line(outcome.errors); };
  return call;
}

std::optional<ProcessId> running(const Result<std::optional<ContainerdTask>>& task) {
  if (!task || !*task || (*task)->state == ContainerdTask::State::stopped) return std::nullopt;
  const ProcessId process = identify((*task)->pid);
  return process.start_ticks == 0 ? std::nullopt : std::optional(process);
}

// Whether a task of this name was deleted, and only its shim is left. If the client that deletes a task is killed
// meanwhile, containerd 1.6 keeps the shim, says that there is no task, and then refuses a new one: "already exists". The
// shim writes init.pid when it has made a container, and containerd knows its task from then on.
bool only_shim_is_left(const ContainerdName& name) {
  for (const pid_t one : probe::all_processes()) {
    const Result<probe::Process> seen = probe::read_process(one);
    if (!seen || !is_of_root(*seen, "containerd-shim")) continue;
    const std::vector<std::string>& words = seen->command;
    const auto tells = [&](const char* option, const std::string& value) {
      const auto found = std::find(words.begin(), words.end(), option);
      return found != words.end() && found + 1 != words.end() && *(found + 1) == value;
    };
    if (!tells("-namespace", name.space) || !tells("-id", name.id)) continue;
    const Result<std::string> made = read_file("/proc/" + std::to_string(one) + "/cwd/init.pid");
    const pid_t first = made ? static_cast<pid_t>(std::atoi(made->c_str())) : 0;
    if (first > 0 && !probe::process_lives(first, 0)) return true;
  }
  return false;
}

// Deletes the task of the container after its first process has ended. containerd keeps a task
// until a client deletes it.
Result<void> ContainerdRuntime::forget_stopped(const ContainerdName& name) const {
  for (const auto until = std::chrono::steady_clock::now() + kStopsWithin;;) {
    const Result<std::optional<ContainerdTask>> task = client_.task(name);
    if (!task) return task.error();
    if (!*task) {
      // The answer is that there is no task, and containerd ends the shim.
      if (only_shim_is_left(name)) static_cast<void>(client_.delete_task(name, kStopsWithin).ok());
      return {};
    }
    if (!running(task)) return client_.delete_task(name);  // it stopped, or was never restored
    if (std::chrono::steady_clock::now() > until) {
      return Error{Code::failed_precondition,
                   "container " + name.text() + " still runs: stop it first (ctr tasks kill)"};
    }
    std::this_thread::sleep_for(kStopLookEvery);
  }
}

Result<ProcessId> ContainerdRuntime::run(const RunSpec& spec) {
  const Result<ContainerdName> name = containerd_name(spec.container);
  const std::string tried = "run container " + spec.container;
  if (!name) return Error{name.error().code, "run " + name.error().message};
  if (spec.command.empty() || spec.command.front().starts_with('-')) {
    return Error{Code::invalid_argument, tried + ": name its image first"};
  }
  Command command;
  command.words = {"ctr", "--address", client_.address(), "--namespace",        name->space,
                   "run", "--detach",  "--null-io",       spec.command.front(), name->id};
  command.words.insert(command.words.end(), spec.command.begin() + 1, spec.command.end());
  command.environment = environment_with_path("");
  command.timeout = options_.timeout;
  const Result<CommandOutcome> done = run_command(command);
  if (!done) return Error{done.error().code, tried + ": " + done.error().message};
  if (done->exit_status != 0) {
    return Error{Code::failed_precondition, tried + ": " + last_line(done->errors)};
  }
  const Result<Container> container = find(spec.container);
  return container ? Result<ProcessId>(container->process) : container.error();
}

Result<Container> ContainerdRuntime::find(const std::string& container) {
  const Result<ContainerdName> name = containerd_name(container);
  const std::string tried = "container " + container;
  if (!name) return name.error();
  const Result<std::string> there = client_.spec_of(*name);
  if (!there) {
    const bool absent = there.error().code == Code::not_found;
    return Error{there.error().code,
                 tried + ": " +
                     (absent ? "containerd has no container of that id in the namespace " +
                                   name->space + " (ctr --namespace " + name->space +
                                   " containers list shows them; NAMESPACE/ID names another)"
                             : there.error().message)};
  }
  const std::optional<ProcessId> process = running(client_.task(*name));
  if (!process) {
    return Error{Code::failed_precondition, tried + ": it is not running: use ctr tasks start"};
  }
  Container found;
  found.id = name->text();
  found.name = container;
  found.process = *process;
  found.bundle = bundle_of_shim(process->pid);
  if (const Result<probe::Process> seen = probe::read_process(process->pid); seen) {
    found.command = seen->command;
  }
  const Result<Freezer> freezer = Freezer::of(process->pid);
  found.frozen = freezer && freezer->frozen();
  found.read_only_root = has_read_only_root(process->pid);
  return found;
}

std::optional<ProcessId> ContainerdRuntime::process_of(const std::string& id) {
  // kymod calls this every second for each job whose container does not run.
  constexpr std::chrono::seconds kLeftAlone{10};
  const Result<ContainerdName> name = containerd_name(id);
  if (!name || std::chrono::steady_clock::now() < hangs_until_.load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  const Result<std::optional<ContainerdTask>> task = client_.task(*name, kAnswersSoon);
  if (!task && task.error().code == Code::deadline_exceeded) {
    hangs_until_.store(std::chrono::steady_clock::now() + kLeftAlone, std::memory_order_relaxed);
  }
  return running(task);
}

// As long as containerd does not answer, it is not known whether the container runs.
Result<bool> ContainerdRuntime::settle_restore(const RestoreSpec& spec, std::int64_t) {
  const Result<ContainerdName> name = containerd_name(spec.container);
  if (!name) return name.error();
  if (is_being_restored(spec.container) || !client_.task(*name, kAnswersSoon)) return false;
  hangs_until_.store({}, std::memory_order_relaxed);
  return true;
}

Result<std::optional<CriuProgram>> ContainerdRuntime::fixed_criu() {
  const Result<std::string> path = client_.server_path();
  if (!path) return path.error();
  Result<CriuProgram> program = criu_of_server("containerd", *path);
  if (!program) return program.error();
  return std::optional(std::move(program).value());
}

Result<void> check_options(const std::string& tried, const CheckpointOptions& options) {
  return refuse_options(tried, options,
                        {"--tcp-established", "--shell-job", "--file-locks", "--ext-unix-sk"},
                        {{"--manage-cgroups", "containerd manages the cgroups of its containers"}},
                        "containerd has no way to pass it on to CRIU");
}

Result<void> ContainerdRuntime::may_dump(const DumpSpec& spec) {
  const std::string tried = "dump container " + name_of_container(spec);
  const auto name = containerd_name(spec.container);
  if (!name) return name.error();
  if (Result<void> good = check_options(tried, spec.options); !good) return good;
  if (spec.pre_dumps != 0) {
    return Error{Code::invalid_argument,
                 tried + ": --pre-dump: containerd has no call that makes one"};
  }
  if (const Result<std::string> of = client_.spec_of(*name); of) {
    if (Result<void> good = preflight::refuse_terminal(tried, *of); !good) return good;
  }
  const Result<probe::Process> process = check_target(spec);
  return process ? Result<void>() : process.error();
}

Result<CommandOutcome> ContainerdRuntime::make_images(const DumpSpec& spec,
                                                      const ContainerdName& name,
                                                      bool leave_running,
                                                      const Command& limits) const {
  return client_.checkpoint(
      name,
      {spec.images_dir, spec.work_dir, leave_running, spec.options.tcp_established,
       spec.options.external_unix_sockets, spec.options.shell_job, spec.options.file_locks},
      limits);
}

// CRIU, or settle_container_dump(), may have thawed what containerd takes for paused, and runc resumes only what is frozen.
void ContainerdRuntime::let_run(const DumpSpec& spec, const ContainerdName& name) const {
  const Result<std::optional<ContainerdTask>> task = client_.task(name);
  if (spec.frozen || !task || !*task || (*task)->state != ContainerdTask::State::paused) return;
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (freezer && !freezer->frozen()) static_cast<void>(freezer->set(true).ok());
  static_cast<void>(client_.resume(name).ok());
}

// containerd starts CRIU with nothing of kymod's. So kymod makes the container stand still from before its dump until it is
// proved, and ends it then.
Result<CommandOutcome> ContainerdRuntime::dump_proved(const DumpSpec& spec,
                                                      const ContainerdName& name,
                                                      const Observer& observer,
                                                      const Command& limits) const {
  if (!spec.frozen) {
    const Scope scope("pause it", {.category = "runtime"});
    const std::uint64_t from_ns = monotonic_ns();
    if (Result<void> paused = client_.pause(name); !paused) return paused.error();
    if (observer.paused) observer.paused(from_ns, monotonic_ns());
  }
  Result<CommandOutcome> done = make_images(spec, name, true, limits);
  if (done) {
    if (Result<void> proved = prove(spec); !proved) done = proved.error();
  }
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (done && (!freezer || !freezer->frozen())) {
    done = Error{Code::failed_precondition,
                 "another program let it run during its dump, after its images were made"};
  }
  if (!done || spec.leave_running) {
    let_run(spec, name);
    return done;
  }
  for (const pid_t pid : probe::process_tree(spec.process.pid)) ::kill(pid, SIGKILL);
  static_cast<void>(freezer->set(false).ok());
  return done;
}

Result<DumpOutcome> ContainerdRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  if (Result<void> good = may_dump(spec); !good) return good.error();
  const ContainerdName name = containerd_name(spec.container).value();
  ContainerCall checkpoint = call_of("could not dump container " + name_of_container(spec));
  checkpoint.command.timeout = options_.timeout;
  checkpoint.images_dir = spec.images_dir;
  checkpoint.log_path = spec.work_dir + kDumpLog;
  checkpoint.stats_path = spec.work_dir + "/stats-dump";
  checkpoint.run = [this, &spec, &observer, name](const Command& limits) {
    return spec.prove ? dump_proved(spec, name, observer, limits)
                      : make_images(spec, name, spec.leave_running, limits);
  };
  Result<DumpOutcome> outcome = dump_container(spec, std::move(checkpoint), observer);
  if (outcome && !spec.leave_running) {
    const Scope scope("forget its task", {.category = "runtime"});
    if (Result<void> forgotten = forget_stopped(name); !forgotten) {
      outcome->warnings.push_back("containerd keeps the task of container " +
                                  name_of_container(spec) + ": " + forgotten.error().message);
    }
  }
  return outcome;
}

Result<void> ContainerdRuntime::settle_dump(const DumpSpec& spec) {
  Result<void> settled = settle_container_dump(spec, in_work_dirs(spec, kDumpLog));
  if (const auto name = containerd_name(spec.container); name) let_run(spec, *name);
  return settled;
}

Result<void> ContainerdRuntime::rehearse(const RehearsalSpec& spec) {
  const std::string tried = "could not restore container " + name_of_container(spec);
  const Result<ContainerdName> name = containerd_name(spec.container);
  if (!name) return name.error();
  const std::optional<ProcessId> process = running(client_.task(*name));
  if (!process) return not_rehearsable(tried, "containerd");
  RehearsalSpec here = spec;
  here.bundle = bundle_of_shim(process->pid);
  return rehearse_by_runc(here, "", options_.timeout);
}

Result<void> ContainerdRuntime::may_restore(const RestoreSpec& spec) {
  const std::string tried = "restore container " + name_of_container(spec);
  if (Result<void> good = check_options(tried, spec.options); !good) return good;
  const Result<ContainerdName> name = containerd_name(spec.container);
  if (!name) return name.error();
  const Result<std::string> there = client_.spec_of(*name);
  if (!there) {
    const bool absent = there.error().code == Code::not_found;
    return Error{
        there.error().code,
        tried + ": " +
            (absent ? "containerd no longer has this container, whose root file system the "
                      "images need: create it again (ctr containers create)"
                    : there.error().message)};
  }
  if (running(client_.task(*name))) {
    return Error{Code::already_exists, tried + ": it runs: stop it first (ctr tasks kill)"};
  }
  if (Result<void> good = preflight::refuse_terminal(tried, *there); !good) return good;
  std::vector<preflight::HostName> names = preflight::host_names_of("/", *there);
  preflight::leave_out_renewed(names, kContainerdRenews, name->id);
  return preflight::check_host_names(tried, names, spec.names);
}

Result<RestoreOutcome> ContainerdRuntime::restore(const RestoreSpec& spec,
                                                  const Observer& observer) {
  if (Result<void> good = may_restore(spec); !good) return good.error();
  const ContainerdName name = containerd_name(spec.container).value();
  const std::string tried = "could not restore container " + name_of_container(spec);
  ContainerCall restore = call_of(tried);
  restore.command.timeout = options_.timeout;
  restore.says_taken = "already exists";  // its task
  restore.images_dir = spec.images_dir;
  restore.log_path = spec.work_dir + kRestoreLog;
  restore.stats_path = spec.work_dir + "/stats-restore";
  const Result<std::string> config = client_.spec_of(name);
  restore.cgroups = {cgroup_name(config ? *config : "", name.text())};
  if (Result<void> removed = remove_killed_restore(name.id, "/run/containerd/runc/" + name.text(),
                                                   restore.cgroups, spec.work_dir);
      !removed) {
    return Error{removed.error().code, tried + ": " + removed.error().message};
  }
  // Only now, because a task that is being restored looks like one that was never started, and its deletion could delete
  // the files of the root, too.
  if (Result<void> free = forget_stopped(name); !free) {
    return Error{free.error().code, tried + ": " + free.error().message};
  }
  restore.run = [this, &spec, name](const Command& limits) -> Result<CommandOutcome> {
    Result<CommandOutcome> done = client_.restore(name, spec.images_dir, spec.work_dir, limits);
    if (done) return done;
    return Error{done.error().code, with_remedy(done.error().message), done.error().errno_value};
  };
  Result<RestoreOutcome> outcome = restore_container(spec, std::move(restore), observer);
  if (!outcome && outcome.error().code == Code::already_exists) return outcome;
  if (!outcome) {
    // containerd would keep it. If it does not answer now, the next restore deletes the task.
    static_cast<void>(client_.delete_task(name, kDeletesWithin).ok());
    return outcome;
  }
  const std::optional<ProcessId> process = running(client_.task(name));
  if (!process) {
    return Error{Code::failed_precondition, tried + ": it ended at once"};
  }
  outcome->process = *process;
  return outcome;
}

Result<std::string> ContainerdRuntime::freeze(const FreezeSpec& spec) {
  return freeze_container(spec, true, "containerd's Pause", [&]() -> Result<void> {
    const Result<ContainerdName> name = containerd_name(spec.container);
    return name ? client_.pause(*name) : name.error();
  });
}

Result<std::string> ContainerdRuntime::unfreeze(const FreezeSpec& spec) {
  return freeze_container(spec, false, "containerd's Resume", [&]() -> Result<void> {
    const Result<ContainerdName> name = containerd_name(spec.container);
    return name ? client_.resume(*name) : name.error();
  });
}

}  // namespace

std::unique_ptr<Runtime> make_containerd_runtime(ContainerdRuntimeOptions options) {
  return std::make_unique<ContainerdRuntime>(options);
}

Result<OciRuntime> oci_runtime_of_containerd() {
  const Result<std::string> path = ContainerdClient().server_path();
  if (!path) return path.error();
  return OciRuntime{"runc", on_path("runc", *path), *path};
}

}  // namespace kymo::runtime
