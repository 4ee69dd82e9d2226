#include "checkpoint/runtimes/containerd/containerd_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/preflight/planned_dump.h"
#include "checkpoint/runtimes/containerd/containerd_client.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/container_processes.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/shared/option_checks.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/server.h"
#include "checkpoint/runtimes/shared/server_runtime.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kStopsWithin{5000};
constexpr std::chrono::milliseconds kStopLookEvery{10};
constexpr std::chrono::milliseconds kDeletesWithin{2000};

class ContainerdRuntime : public ServerRuntime {
 public:
  explicit ContainerdRuntime(ContainerdRuntimeOptions options)
      : ServerRuntime("containerd", "containerd", options.timeout) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& container) override;
  Result<void> may_dump(const DumpSpec& spec) override;
  Result<void> may_restore(const RestoreSpec& spec) override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;

 private:
  Result<ServedContainer> look_up(const std::string& id,
                                  std::chrono::milliseconds patience) const override;
  [[nodiscard]] Result<std::string> server_path() const override { return client_.server_path(); }
  [[nodiscard]] Result<void> pause(const std::string& id) const override;
  [[nodiscard]] Result<void> resume(const std::string& id) const override;
  [[nodiscard]] Result<CommandOutcome> make_images(const DumpSpec& spec, bool leave_running,
                                                   const Command& limits) const override;
  [[nodiscard]] bool ends_by_kymod(const DumpSpec& /*spec*/) const override { return false; }
  [[nodiscard]] Result<void> forget_stopped(const ContainerdName& name) const;

  ContainerdClient client_;
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

Result<ServedContainer> ContainerdRuntime::look_up(const std::string& id,
                                                   std::chrono::milliseconds patience) const {
  const Result<ContainerdName> name = containerd_name(id);
  if (!name) return name.error();
  const Result<std::optional<ContainerdTask>> task = client_.task(*name, patience);
  if (!task) return task.error();
  if (!*task || (*task)->state == ContainerdTask::State::stopped) return ServedContainer{};
  return ServedContainer{(*task)->pid, (*task)->state == ContainerdTask::State::paused};
}

Result<void> ContainerdRuntime::pause(const std::string& id) const {
  const Result<ContainerdName> name = containerd_name(id);
  return name ? client_.pause(*name) : name.error();
}

Result<void> ContainerdRuntime::resume(const std::string& id) const {
  const Result<ContainerdName> name = containerd_name(id);
  return name ? client_.resume(*name) : name.error();
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

bool runs(const Result<std::optional<ContainerdTask>>& task) {
  return task && *task && (*task)->state != ContainerdTask::State::stopped &&
         probe::process_lives((*task)->pid, 0);
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
    if (!runs(task)) return client_.delete_task(name);  // it stopped, or was never restored
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
  command.timeout = timeout();
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
  const Result<ServedContainer> seen = look_up(container, kAnswersWithin);
  if (!seen || seen->pid == 0) {
    return Error{Code::failed_precondition, tried + ": it is not running: use ctr tasks start"};
  }
  Container found = container_that_runs_as(seen->pid);
  found.id = name->text();
  found.name = container;
  return found;
}

// containerd passes these on to CRIU at a dump, and at a restore none. CRIU takes them from its files as well.
Result<void> check_options(const std::string& tried, const CheckpointOptions& options,
                           const std::string& config_json) {
  Result<void> good = refuse_options(
      tried, options, {"--tcp-established", "--shell-job", "--file-locks", "--ext-unix-sk"},
      {{"--manage-cgroups", "containerd manages the cgroups of its containers"}},
      "containerd has no way to pass it on to CRIU");
  if (!good) return good;
  const preflight::Options by_files = preflight::options_by_files(config_json);
  for (const auto& [asked, there, name] :
       {std::tuple(options.tcp_established, by_files.tcp_established, "tcp-established"),
        std::tuple(options.file_locks, by_files.file_locks, "file-locks"),
        std::tuple(options.shell_job, by_files.shell_job, "shell-job"),
        std::tuple(options.external_unix_sockets, by_files.external_unix_sockets, "ext-unix-sk")}) {
    if (!asked || there) continue;
    return Error{
        Code::failed_precondition,
        tried + ": --" + name +
            ": containerd does not pass it on to CRIU at a restore, which needs it: write " + name +
            " into /etc/criu/runc.conf, or into a file that the container's "
            "annotation org.criu.config names"};
  }
  return {};
}

Result<void> ContainerdRuntime::may_dump(const DumpSpec& spec) {
  const std::string tried = "dump container " + name_of_container(spec);
  const auto name = containerd_name(spec.container);
  if (!name) return name.error();
  const Result<std::string> of = client_.spec_of(*name);
  if (Result<void> good = check_options(tried, spec.options, of ? *of : ""); !good) return good;
  if (spec.prove && spec.options.tcp_established && !spec.leave_running) {
    return Error{
        Code::invalid_argument,
        tried +
            ": --prove: before kymod has proved it and ends it, containerd's CRIU lets the "
            "network of the container go, and its connections would break: leave out "
            "--prove, or rehearse a dump with --leave-running first"};
  }
  if (of) {
    if (Result<void> good = preflight::refuse_terminal(tried, *of); !good) return good;
  }
  const Result<probe::Process> process = check_target(spec);
  return process ? Result<void>() : process.error();
}

Result<CommandOutcome> ContainerdRuntime::make_images(const DumpSpec& spec, bool leave_running,
                                                      const Command& limits) const {
  const Result<ContainerdName> name = containerd_name(spec.container);
  if (!name) return name.error();
  return client_.checkpoint(
      *name,
      {spec.images_dir, spec.work_dir, leave_running, spec.options.tcp_established,
       spec.options.external_unix_sockets, spec.options.shell_job, spec.options.file_locks},
      limits);
}

Result<DumpOutcome> ContainerdRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  Result<DumpOutcome> outcome = ServerRuntime::dump(spec, observer);
  if (outcome && !spec.leave_running) {
    const Scope scope("forget its task", {.category = "runtime"});
    const Result<ContainerdName> name = containerd_name(spec.container);
    if (Result<void> forgotten = forget_stopped(*name); !forgotten) {
      outcome->warnings.push_back("containerd keeps the task of container " +
                                  name_of_container(spec) + ": " + forgotten.error().message);
    }
  }
  return outcome;
}

Result<void> ContainerdRuntime::may_restore(const RestoreSpec& spec) {
  const std::string tried = "restore container " + name_of_container(spec);
  const Result<ContainerdName> name = containerd_name(spec.container);
  if (!name) return name.error();
  const Result<std::string> there = client_.spec_of(*name);
  if (Result<void> good = check_options(tried, spec.options, there ? *there : ""); !good)
    return good;
  if (!there) {
    const bool absent = there.error().code == Code::not_found;
    return Error{
        there.error().code,
        tried + ": " +
            (absent ? "containerd no longer has this container, whose root file system the "
                      "images need: create it again (ctr containers create)"
                    : there.error().message)};
  }
  if (runs(client_.task(*name))) {
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
  ContainerCall restore = call_of("restore", spec);
  restore.says_taken = "already exists";  // its task
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
  return with_process(*std::move(outcome), spec);
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
