#include "checkpoint/runtimes/podman/podman_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "base/mounts.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/runtimes/podman/podman_files.h"
#include "checkpoint/runtimes/podman/podman_reason.h"
#include "checkpoint/runtimes/podman/podman_rehearsal.h"
#include "checkpoint/runtimes/podman/podman_shared_memory.h"
#include "checkpoint/runtimes/podman/podman_store.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/container_calls.h"
#include "checkpoint/runtimes/shared/container_end.h"
#include "checkpoint/runtimes/shared/container_processes.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/shared/option_checks.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/proved_dump.h"
#include "checkpoint/runtimes/shared/rehearsal.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

using nlohmann::json;

// What podman and its OCI runtime leave in podman's folder of a dumped container: the images,
// CRIU's log and statistics, and the container's /dev/shm.
constexpr char kCheckpoint[] = "/checkpoint";
constexpr char kDumpLog[] = "/dump.log";
constexpr char kDumpStats[] = "/stats-dump";

// podman says so of a restore if it takes the container for a running one: somebody else has started it, or podman could
// not note its end.
constexpr char kRunsAlready[] = "container state improper";

// podman_reason() with the name of the container in place of its id.
std::string named_reason(const CommandOutcome& outcome, const std::string& id,
                         const std::string& name) {
  std::string reason = podman_reason(outcome.errors);
  for (std::size_t at = 0; (at = reason.find(id, at)) != std::string::npos; at += name.size()) {
    reason.replace(at, id.size(), name);
  }
  return reason;
}

// The names of the container's cgroups: with cgroupfs and systemd, each also with the inner one
// that crun makes.
std::vector<std::string> cgroups_of(const std::string& id) {
  const std::string name = "libpod-" + id;
  return {name, name + ".scope", name + "/container", name + ".scope/container"};
}

class PodmanRuntime : public Runtime {
 public:
  explicit PodmanRuntime(PodmanRuntimeOptions options) : options_(std::move(options)) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& container) override;
  Result<std::optional<ProcessId>> process_of(const std::string& id) override;
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
  // Returns a command of podman with `criu_folder` first on PATH.
  [[nodiscard]] Command command(std::vector<std::string> words,
                                const std::string& criu_folder) const;
  [[nodiscard]] Command command(std::vector<std::string> words) const {
    return command(std::move(words), options_.criu_folder);
  }
  // `podman container VERB WORDS ID`
  [[nodiscard]] Command command_of(const std::string& verb, const std::string& id,
                                   std::vector<std::string> words,
                                   const std::string& criu_folder) const;
  // Where podman keeps its containers. podman is asked until it has answered once. That looks at each container, so while
  // another podman dumps or restores one of them, it waits for that.
  Result<PodmanStore> find_store(std::chrono::milliseconds within = std::chrono::seconds(10));
  Result<std::string> restorable(const RestoreSpec& spec);
  // What podman says of a container.
  Result<json> look_up(const std::string& name) const;
  Result<Container> inspect(const std::string& name) const;
  // Returns the call of a checkpoint or restore. `name`: of the container, for messages. CRIU's log and statistics are
  // moved from podman's folder `userdata` to `work_dir`. `said` gets the output of podman.
  ContainerCall call(const std::string& verb, const std::string& id, const std::string& name,
                     const std::string& userdata, const std::string& work_dir,
                     std::vector<std::string> words, const std::string& criu_folder,
                     std::string* said) const;

  const PodmanRuntimeOptions options_;
  std::mutex mutex_;  // for what follows; not held while podman is asked
  std::optional<PodmanStore> store_;
};

Command PodmanRuntime::command(std::vector<std::string> words,
                               const std::string& criu_folder) const {
  words.insert(words.begin(), options_.flags.begin(), options_.flags.end());
  words.insert(words.begin(), options_.program);
  Command command;
  command.words = std::move(words);
  command.environment = environment_with_path(criu_folder);
  command.timeout = options_.timeout;
  return command;
}

Result<PodmanStore> PodmanRuntime::find_store(std::chrono::milliseconds within) {
  {
    const std::lock_guard lock(mutex_);
    if (store_) return *store_;
  }
  const Scope scope("ask podman for its folders", {.category = "runtime"});
  Command ask = command({"info", "--format", "json"});
  ask.timeout = within;
  const Result<CommandOutcome> info = run_command(ask);
  if (!info) return info.error();
  if (info->exit_status != 0) {
    return Error{Code::failed_precondition, "podman info: " + podman_reason(info->errors)};
  }
  Result<PodmanStore> found = PodmanStore::from_info(info->output);
  const std::lock_guard lock(mutex_);
  if (found) store_ = *found;
  return found;
}

// This takes a tenth of a second.
Result<json> PodmanRuntime::look_up(const std::string& name) const {
  const std::string tried = "container " + name;
  const Scope scope("ask podman", {.category = "runtime"});
  const Result<CommandOutcome> said = run_command(command({"container", "inspect", "--", name}));
  if (!said) {
    return Error{said.error().code, tried + ": " + said.error().message, said.error().errno_value};
  }
  if (said->exit_status != 0) {
    return Error{Code::not_found,
                 tried + ": " + podman_reason(said->errors) + " (podman ps -a shows them)"};
  }
  json all = parse_json(said->output);
  if (!all.is_array() || all.empty() || !all[0].is_object()) {
    return Error{Code::data_loss, tried + ": podman inspect prints no JSON of a container"};
  }
  return std::move(all[0]);
}

// Asks podman about a container that its files do not show.
Result<Container> PodmanRuntime::inspect(const std::string& name) const {
  const Result<json> seen = look_up(name);
  if (!seen) return seen.error();
  const json& state = member(*seen, "State");
  const std::string status = text_of(state, "Status");
  if (status != "running" && status != "paused") {
    return Error{Code::failed_precondition, "container " + name + ": it is not running (it is " +
                                                status + "): use podman start " + name};
  }
  Container found = container_of(static_cast<pid_t>(number_of(state, "Pid")));
  found.id = text_of(*seen, "Id");
  return found;
}

Result<std::optional<ProcessId>> PodmanRuntime::process_of(const std::string& id) {
  const Result<PodmanStore> store = this->find_store();
  if (!store) return store.error();
  const pid_t pid = store->pid_of(id);
  return pid == 0 ? std::optional<ProcessId>() : std::optional(identify(pid));
}

Result<Container> PodmanRuntime::find(const std::string& container) {
  if (container.empty() || container.front() == '-' || container.find('/') != std::string::npos) {
    return Error{Code::invalid_argument,
                 "container '" + container + "': not a valid name or id of a podman container"};
  }
  const Result<PodmanStore> store = this->find_store();
  if (!store) {
    return Error{store.error().code, "container " + container + ": " + store.error().message,
                 store.error().errno_value};
  }
  const std::optional<std::string> id = store->id_of(container);
  const pid_t pid = id ? store->pid_of(*id) : 0;
  Container found = container_of(pid);
  if (pid != 0) {
    found.id = *id;
  } else {
    Result<Container> asked = inspect(container);
    if (!asked) {
      return asked;
    }
    found = std::move(asked).value();
  }
  found.bundle = store->folder_of(found.id);
  // A job knows only the id of its container.
  found.name = store->name_of(found.id);
  if (found.name.empty()) found.name = container;
  return found;
}

Result<void> check_podman_options(const std::string& tried, const CheckpointOptions& options) {
  return refuse_options(
      tried, options, {"--tcp-established", "--file-locks"},
      {{"--external", "podman itself names the external mounts of its containers to CRIU"},
       {"--root", "podman chooses a container's root"}},
      "podman has no flag for it");
}

std::vector<std::string> podman_flags(const CheckpointOptions& options) {
  std::vector<std::string> flags{"--keep", "--print-stats"};
  if (options.tcp_established) flags.emplace_back("--tcp-established");
  if (options.file_locks) flags.emplace_back("--file-locks");
  return flags;
}

Command PodmanRuntime::command_of(const std::string& verb, const std::string& id,
                                  std::vector<std::string> words,
                                  const std::string& criu_folder) const {
  words.insert(words.begin(), {"container", verb});
  words.push_back(id);
  return command(std::move(words), criu_folder);
}

Result<CommandOutcome> with_output(Result<CommandOutcome> outcome, std::string& said) {
  if (outcome && outcome->exit_status == 0) said = outcome->output;
  return outcome;
}

ContainerCall PodmanRuntime::call(const std::string& verb, const std::string& id,
                                  const std::string& name, const std::string& userdata,
                                  const std::string& work_dir, std::vector<std::string> words,
                                  const std::string& criu_folder, std::string* said) const {
  const bool is_dump = verb == "checkpoint";
  const std::string log = is_dump ? kDumpLog : "/restore.log";
  const std::string stats = is_dump ? kDumpStats : "/stats-restore";
  ContainerCall call;
  call.runtime = "podman";
  call.command = command_of(verb, id, std::move(words), criu_folder);
  call.tried = "could not " + std::string(is_dump ? "dump" : verb) + " container " + name;
  call.log_path = work_dir + log;
  call.stats_path = work_dir + stats;
  call.reason = [id, name](const CommandOutcome& outcome) {
    return named_reason(outcome, id, name);
  };
  call.growing_log = userdata + log;
  forget(userdata + stats);
  call.run = [said](const Command& limits) { return with_output(run_command(limits), *said); };
  call.collect = [=](const CommandOutcome* outcome) {
    move_file(userdata + log, work_dir + log);
    move_file(userdata + stats, work_dir + stats);
    if (outcome != nullptr && outcome->exit_status == 0) {
      // The file is only for later reading, so an error does not matter.
      static_cast<void>(replace_file(work_dir + "/podman-" + verb + ".json", outcome->output).ok());
    }
  };
  return call;
}

Result<void> PodmanRuntime::may_dump(const DumpSpec& spec) {
  const std::string asked = "dump container " + name_of_container(spec);
  Result<void> good = check_podman_options(asked, spec.options);
  if (!good) {
    return good;
  }
  if (const Result<probe::Process> process = check_target(spec); !process) {
    return process.error();
  }
  if (const auto freezer = Freezer::of(spec.process.pid); freezer && freezer->frozen()) {
    return Error{
        Code::failed_precondition,
        asked +
            ": it is frozen, and podman dumps only running containers: use kymo unfreeze podman " +
            name_of_container(spec)};
  }
  if (spec.prove) {
    const Result<void> can = check_runs_by_runc(asked, spec.container, {});
    if (!can) return can;
  }
  const Result<PodmanStore> store = this->find_store();
  if (store && !spec.leave_running && store->removes_when_ended(spec.container)) {
    return Error{Code::failed_precondition,
                 asked +
                     ": it was started with --rm, so podman would remove it and it could not "
                     "be restored: use --leave-running, or start it without --rm"};
  }
  return {};
}

Result<DumpOutcome> PodmanRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  if (Result<void> good = may_dump(spec); !good) {
    return good.error();
  }
  const Result<PodmanStore> store = this->find_store();
  if (!store) {
    return Error{store.error().code,
                 "dump container " + name_of_container(spec) + ": " + store.error().message};
  }
  const std::string criu_folder = spec.criu ? spec.criu->folder : options_.criu_folder;
  const std::string userdata = store->folder_of(spec.container);
  std::vector<std::string> flags = podman_flags(spec.options);
  if (spec.leave_running) {
    flags.emplace_back("--leave-running");
  }
  std::string said;
  ContainerCall checkpoint = call("checkpoint", spec.container, name_of_container(spec), userdata,
                                  spec.work_dir, flags, criu_folder, &said);
  checkpoint.run = [&](const Command& limits) {
    return with_output(run_proved(limits, spec), said);
  };
  checkpoint.images_dir = spec.images_dir;
  const CheckpointLink link(userdata + kCheckpoint, spec.images_dir);
  if (Result<void> made = link.made(); !made) return made.error();
  SharedMemoryArchive archive(userdata, spec);
  if (Result<void> made = archive.made(); !made) {
    return Error{made.error().code,
                 "dump container " + name_of_container(spec) + ": " + made.error().message};
  }
  Result<DumpOutcome> outcome = dump_container(spec, std::move(checkpoint), observer);
  if (outcome) {
    archive.conclude(*outcome);
    const PodmanTimes times = podman_times(said, "checkpoint");
    outcome->podman_time_ns = times.podman_ns;
    outcome->runtime_time_ns = times.runtime_ns;
  }
  return outcome;
}

Result<void> PodmanRuntime::settle_dump(const DumpSpec& spec) {
  const Result<PodmanStore> store = this->find_store();
  if (!store) {
    // Without podman's folder, settle the rest.
    static_cast<void>(settle_container_dump(spec, in_work_dirs(spec, kDumpLog)).ok());
    return store.error();
  }
  const std::string userdata = store->folder_of(spec.container);
  Result<void> settled = settle_container_dump(spec, {userdata + kDumpLog});
  for (const char* file : {kDumpLog, kDumpStats}) {
    move_file(userdata + file, spec.work_dir + file);
  }
  SharedMemoryArchive::undo(userdata, spec);
  CheckpointLink::undo(userdata + kCheckpoint, spec.images_dir);
  return settled;
}

Result<void> PodmanRuntime::rehearse(const RehearsalSpec& spec) {
  const std::string tried = "could not restore container " + name_of_container(spec);
  const Result<PodmanStore> store = this->find_store();
  if (!store) return Error{store.error().code, tried + ": " + store.error().message};
  const bool runs = store->pid_of(spec.container) != 0;
  const Result<json> ended = runs ? json() : look_up(spec.container);
  if (!ended) return ended.error();
  Result<void> can = check_runs_by_runc(tried, spec.container, *ended);
  if (!can) return can;
  RehearsalSpec here = spec;
  here.bundle = store->folder_of(spec.container);
  return rehearse_by_runc(here, options_.criu_folder, options_.timeout, layers_of(*ended));
}

// As long as podman's folders are not known, neither is whether the container runs.
Result<bool> PodmanRuntime::settle_restore(const RestoreSpec& spec, std::int64_t) {
  if (is_being_restored(spec.container)) return false;
  const Result<PodmanStore> store = this->find_store(std::chrono::seconds(3));
  if (!store) return false;
  // podman would write its next checkpoint through this link, over the images.
  const std::string userdata = store->folder_of(spec.container);
  CheckpointLink::undo(userdata + kCheckpoint, spec.images_dir);
  SharedMemoryOfRestore::undo(userdata, spec);
  return true;
}

// Checks the request and returns the id of the container into which the images are restored.
Result<std::string> PodmanRuntime::restorable(const RestoreSpec& spec) {
  const std::string asked = "restore container " + name_of_container(spec);
  if (Result<void> good = check_podman_options(asked, spec.options); !good) {
    return good.error();
  }
  const Result<PodmanStore> store = this->find_store();
  if (!store) {
    return Error{store.error().code, asked + ": " + store.error().message};
  }
  const std::optional<std::string> id = store->id_of(spec.container);
  if (!id) {
    return Error{Code::not_found,
                 asked +
                     ": podman no longer has it; a checkpoint can be restored only into its own "
                     "container, so that container must not be removed"};
  }
  if (store->pid_of(*id) != 0) {
    return Error{Code::failed_precondition,
                 asked + ": it runs: podman stop it, or restore it later"};
  }
  std::vector<preflight::HostName> names = preflight::host_names_in(store->folder_of(*id));
  preflight::leave_out_renewed(names, kPodmanRenews, *id);
  if (const auto good = preflight::check_host_names(asked, names, spec.names); !good) {
    return good.error();
  }
  return *id;
}

Result<void> PodmanRuntime::may_restore(const RestoreSpec& spec) {
  const Result<std::string> id = restorable(spec);
  return id ? Result<void>() : id.error();
}

Result<RestoreOutcome> PodmanRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  const Result<std::string> id = restorable(spec);
  if (!id) {
    return id.error();
  }
  const Result<PodmanStore> store = this->find_store();
  if (!store) {
    return Error{store.error().code,
                 "restore container " + name_of_container(spec) + ": " + store.error().message};
  }
  const std::string userdata = store->folder_of(*id);
  std::string said;
  ContainerCall restore =
      call("restore", *id, name_of_container(spec), userdata, spec.work_dir,
           podman_flags(spec.options), spec.criu ? spec.criu->folder : options_.criu_folder, &said);
  restore.cgroups = cgroups_of(*id);
  restore.images_dir = spec.images_dir;
  restore.says_taken = kRunsAlready;
  if (Result<void> removed =
          remove_killed_restore(*id, record_of_runc(*id), restore.cgroups, userdata);
      !removed) {
    return Error{removed.error().code,
                 "restore container " + spec.container + ": " + removed.error().message};
  }
  const CheckpointLink link(userdata + kCheckpoint, spec.images_dir);
  if (Result<void> made = link.made(); !made) {
    return made.error();
  }
  const SharedMemoryOfRestore shared_memory(userdata, spec);
  if (Result<void> made = shared_memory.made(); !made) {
    return Error{made.error().code,
                 "restore container " + name_of_container(spec) + ": " + made.error().message};
  }
  Result<RestoreOutcome> outcome = restore_container(spec, std::move(restore), observer);
  if (!outcome) return outcome;
  if (!shared_memory.fault().empty()) outcome->warnings.push_back(shared_memory.fault());
  const PodmanTimes times = podman_times(said, "restore");
  outcome->podman_time_ns = times.podman_ns;
  outcome->runtime_time_ns = times.runtime_ns;
  const Result<Container> container = find(*id);
  if (!container) {
    return container.error();
  }
  outcome->process = container->process;
  return outcome;
}

Result<ProcessId> PodmanRuntime::run(const RunSpec& spec) {
  return run_by_program(command({}), {"rm", "--force", "--time", "0"}, spec, podman_reason,
                        [this](const std::string& id) { return find(id); });
}

Result<std::string> PodmanRuntime::freeze(const FreezeSpec& spec) {
  return freeze_container(spec, true, "podman pause", command({"pause", spec.container}));
}

Result<std::string> PodmanRuntime::unfreeze(const FreezeSpec& spec) {
  return freeze_container(spec, false, "podman unpause", command({"unpause", spec.container}));
}

}  // namespace

std::unique_ptr<Runtime> make_podman_runtime(PodmanRuntimeOptions options) {
  return std::make_unique<PodmanRuntime>(std::move(options));
}

Result<OciRuntime> oci_runtime_of_podman(const std::vector<std::string>& flags) {
  const auto say = [&flags](const std::string& what) {
    std::vector<std::string> words{"podman"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"info", "--format", "{{.Host.OCIRuntime." + what + "}}"});
    return first_line_of(std::move(words));
  };
  OciRuntime oci{say("Name"), say("Path")};
  if (oci.name.empty()) {
    return Error{Code::unavailable,
                 "podman info does not name its runtime: run podman info to see why"};
  }
  return oci;
}

}  // namespace kymo::runtime
