#include "checkpoint/runtimes/runc/runc_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/mounts.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/ghosts.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/runtimes/runc/bundle.h"
#include "checkpoint/runtimes/runc/left_over.h"
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
#include "checkpoint/runtimes/shared/runc_words.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

using nlohmann::json;

constexpr char kCriuLog[] = "/dump.log";
// What runc says if somebody else has made the container (libcontainer's ErrExist).
constexpr char kTaken[] = "container with given ID already exists";
constexpr char kRestoreLog[] = "/restore.log";
constexpr char kRootOfRestore[] = "/criu-root";  // in runc's folder of the container
constexpr std::chrono::seconds kRemovesWithin{5};
// How long kymod waits, when it starts, for a restore that an earlier kymod began and that still
// goes on.
constexpr std::chrono::seconds kEndsAloneWithin{3};
constexpr std::chrono::milliseconds kLookAloneEvery{10};

std::string bundle_of(const json& state) {
  const json labels = state.value("config", json::object()).value("labels", json::array());
  constexpr std::string_view kBundle = "bundle=";
  for (const json& label : labels) {
    if (label.is_string() && label.get<std::string>().starts_with(kBundle)) {
      return label.get<std::string>().substr(kBundle.size());
    }
  }
  return {};
}

// Whether the process is a runc (`program`) that restores this container, or works for one that
// kymod has started. The words of `kymo restore CONTAINER` are similar.
bool restores(pid_t process, const RestoreSpec& spec, const std::string& program) {
  const std::string folder = "/proc/" + std::to_string(process);
  const auto has = [](const Result<std::string>& words, const std::string& word) {
    return words && ('\0' + *words).find('\0' + word + '\0') != std::string::npos;
  };
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  const Result<std::string> words = read_file(folder + "/cmdline");
  const bool is_runc = words && name_of(words->substr(0, words->find('\0'))) == name_of(program);
  return (is_runc && has(words, "restore") && has(words, spec.container)) ||
         has(read_file(folder + "/environ"), restore_mark(spec));
}

// Whether the container had a pipe as its input, output or error. runc notes what they were beside the images.
bool had_pipes(const std::string& images_dir) {
  const Result<std::string> noted = read_file(images_dir + "/descriptors.json");
  return noted && noted->find("pipe:") != std::string::npos;
}

class RuncRuntime : public Runtime {
 public:
  explicit RuncRuntime(RuncRuntimeOptions options) : options_(std::move(options)) {
    left_over_ = read_left_over(options_.memory);
    const std::map<std::string, FolderId> earlier = left_over_;
    for (const auto& [id, folder] : earlier) try_again_to_remove(id);
  }

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& container) override;
  Result<std::optional<ProcessId>> process_of(const std::string& id) override {
    return running(id);
  }
  Result<void> may_dump(const DumpSpec& spec) override;
  Result<void> may_restore(const RestoreSpec& spec) override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<void> settle_dump(const DumpSpec& spec) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;
  Result<void> rehearse(const RehearsalSpec& spec) override;
  Result<bool> settle_restore(const RestoreSpec& spec, std::int64_t began_unix_ns) override;
  Result<std::string> freeze(const FreezeSpec& spec) override;
  Result<std::string> unfreeze(const FreezeSpec& spec) override;

 private:
  [[nodiscard]] std::optional<ProcessId> running(const std::string& id) const;
  [[nodiscard]] std::string folder_of(const std::string& id) const {
    return options_.root + "/" + id;
  }
  [[nodiscard]] Result<json> read_state(const std::string& tried, const std::string& id) const;
  // Returns a command of runc with `criu_folder` first on PATH.
  [[nodiscard]] Command command(const std::string& log, std::vector<std::string> words,
                                const std::string& criu_folder) const;
  [[nodiscard]] Command command(const std::string& log, std::vector<std::string> words) const {
    return command(log, std::move(words), options_.criu_folder);
  }
  [[nodiscard]] ContainerCall call(const std::string& tried, const std::string& work_dir,
                                   std::vector<std::string> words,
                                   const std::string& criu_folder) const;
  [[nodiscard]] Result<void> check_free(const std::string& tried, const std::string& id) const;
  void remove_left_over(const std::string& id);
  void try_again_to_remove(const std::string& id);
  [[nodiscard]] bool is_half_restored(const std::string& id) const;
  [[nodiscard]] bool restore_runs(const RestoreSpec& spec) const;
  Result<void> remove_half_restored(const RestoreSpec& spec);
  bool runs_without_its_runc(const RestoreSpec& spec);

  const RuncRuntimeOptions options_;
  std::mutex mutex_;
  // The containers that could not be removed, and their folders. Guarded by mutex_.
  std::map<std::string, FolderId> left_over_;
};

Command RuncRuntime::command(const std::string& log, std::vector<std::string> words,
                             const std::string& criu_folder) const {
  const std::vector<std::string> flags = runc_log_flags(log);
  words.insert(words.begin(), flags.begin(), flags.end());
  words.insert(words.begin(), {options_.program, "--root", options_.root});
  Command command;
  command.words = std::move(words);
  command.environment = environment_with_path(criu_folder);
  command.timeout = options_.timeout;
  return command;
}

ContainerCall RuncRuntime::call(const std::string& tried, const std::string& work_dir,
                                std::vector<std::string> words,
                                const std::string& criu_folder) const {
  const std::string log = work_dir + kRuncLog;
  ContainerCall call;
  call.runtime = "runc";
  call.command = command(log, std::move(words), criu_folder);
  call.tried = tried;
  call.reason = [log](const CommandOutcome& outcome) {
    const std::string logged = last_logged_error(log);
    return logged.empty() ? last_line(outcome.errors) : logged;
  };
  return call;
}

Result<json> RuncRuntime::read_state(const std::string& tried, const std::string& id) const {
  if (!is_container_id(id)) {
    return Error{Code::invalid_argument,
                 tried + ": a runc container's id is made of [A-Za-z0-9_+.-]"};
  }
  const Result<std::string> text = read_file(folder_of(id) + "/state.json");
  if (!text) {
    return Error{Code::not_found, tried + ": runc has no such container in " + options_.root +
                                      " (runc --root " + options_.root + " list shows them)"};
  }
  json state = parse_json(*text);
  if (!state.is_object()) {
    return Error{Code::data_loss, tried + ": runc's " + folder_of(id) + "/state.json is damaged"};
  }
  return state;
}

std::optional<ProcessId> RuncRuntime::running(const std::string& id) const {
  const Result<json> state = read_state("container " + id, id);
  if (!state) {
    return std::nullopt;
  }
  const ProcessId process{state->value("init_process_pid", 0),
                          state->value("init_process_start", std::uint64_t{0})};
  std::error_code error;
  if (std::filesystem::exists(folder_of(id) + "/exec.fifo", error) ||
      !probe::process_lives(process.pid, process.start_ticks)) {
    return std::nullopt;  // the container was created but not started, or it has stopped
  }
  return process;
}

Result<Container> RuncRuntime::find(const std::string& container) {
  const std::string tried = "container " + container;
  const Result<json> state = read_state(tried, container);
  if (!state) {
    return state.error();
  }
  const ProcessId process{state->value("init_process_pid", 0),
                          state->value("init_process_start", std::uint64_t{0})};
  if (!probe::process_lives(process.pid, process.start_ticks)) {
    return Error{Code::failed_precondition, tried +
                                                ": it has stopped: use runc delete, and then "
                                                "run it again"};
  }
  std::error_code error;
  if (std::filesystem::exists(folder_of(container) + "/exec.fifo", error)) {
    return Error{Code::failed_precondition,
                 tried + ": it was created and not started: runc start " + container};
  }
  Container found = container_of(process.pid);
  found.id = container;
  found.name = container;
  found.bundle = bundle_of(*state);
  found.process = process;
  return found;
}

Result<void> RuncRuntime::check_free(const std::string& tried, const std::string& id) const {
  if (!is_container_id(id)) {
    return Error{Code::invalid_argument,
                 tried + ": a runc container's id is made of [A-Za-z0-9_+.-]"};
  }
  std::error_code error;
  if (std::filesystem::exists(folder_of(id), error)) {
    return Error{Code::already_exists, tried + ": runc has a container of that name already in " +
                                           options_.root + ": delete it, or name another"};
  }
  return {};
}

// Removes a container that a failed or killed runc has left half made. The container must not have
// existed before.
void RuncRuntime::remove_left_over(const std::string& id) {
  const std::string folder = folder_of(id);
  if (!id_of_folder(folder)) return;
  const Scope scope("remove what is left", {.category = "runtime"});
  // A runc that was killed leaves the container's root mounted in this folder. Removing the
  // folder would then delete the files of the root.
  if (detach_mounts(folder + "/")) {
    Command remove = command("/dev/null", {"delete", "--force", id});
    remove.timeout = kRemovesWithin;
    static_cast<void>(run_command(remove).ok());
  }
  const std::optional<FolderId> stays = id_of_folder(folder);
  const std::lock_guard lock(mutex_);
  const bool was_known = left_over_.erase(id) != 0;
  if (stays) left_over_.emplace(id, *stays);
  if (stays || was_known) write_left_over(options_.memory, left_over_);
}

// Does so unless somebody else has removed it, and perhaps made another one.
void RuncRuntime::try_again_to_remove(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto entry = left_over_.find(id);
    if (entry == left_over_.end()) return;
    if (id_of_folder(folder_of(id)) != entry->second) {
      left_over_.erase(entry);
      write_left_over(options_.memory, left_over_);
      return;
    }
  }
  remove_left_over(id);
}

bool RuncRuntime::is_half_restored(const std::string& id) const {
  std::error_code error;
  return std::filesystem::exists(folder_of(id) + kRootOfRestore, error) &&
         !std::filesystem::exists(folder_of(id) + "/state.json", error);
}

// Whether a runc restores the container, with or without its kymod.
bool RuncRuntime::restore_runs(const RestoreSpec& spec) const {
  const std::vector<pid_t> all = probe::all_processes();
  return std::any_of(all.begin(), all.end(),
                     [&](pid_t one) { return restores(one, spec, options_.program); });
}

// Removes what is left of a restore during which kymod and runc were killed: runc does not know the
// container, but has a folder of that name with the container's root mounted in it. A restore that
// still goes on is left alone. A CRIU whose runc is gone gives up, but the processes that it has
// made may wait for it for ever.
Result<void> RuncRuntime::remove_half_restored(const RestoreSpec& spec) {
  const std::string& id = spec.container;
  if (!is_half_restored(id) || restore_runs(spec)) return {};
  Result<void> done = criu::end_leftover_restore(spec.work_dir + kRestoreLog, {});
  if (!done) return done;
  const Result<std::string> config = read_file(spec.bundle + "/config.json");
  done = remove_killed_restore(id, folder_of(id), {cgroup_name(config ? *config : "", id)},
                               spec.work_dir);
  if (done) remove_left_over(id);  // or note it for the next time
  return done;
}

// Whether the container runs although the runc that restored it was killed: CRIU does its last steps without runc. Then
// the root that runc has mounted in its own folder is detached, because `runc delete` would delete the root's files.
bool RuncRuntime::runs_without_its_runc(const RestoreSpec& spec) {
  if (!criu::end_leftover_restore(spec.work_dir + kRestoreLog, {})) return false;
  if (!running(spec.container)) return false;
  const std::string root = folder_of(spec.container) + kRootOfRestore;
  static_cast<void>(detach_mounts(root).ok());
  ::rmdir(root.c_str());
  return true;
}

Result<ProcessId> RuncRuntime::run(const RunSpec& spec) {
  const std::string tried = "run container " + spec.container;
  Result<void> good = check_free(tried, spec.container);
  if (good) {
    good = check_bundle(tried, spec.bundle);
  }
  if (!good) {
    return good.error();
  }
  ContainerCall run =
      call(tried, spec.work_dir, {"run", "--detach", "--bundle", spec.bundle, spec.container},
           options_.criu_folder);
  run.command.output_path = "/dev/null";
  const Result<CommandOutcome> done = run_command(run.command);
  if (!done || done->exit_status != 0) {
    const bool is_others = done && run.reason(*done).find(kTaken) != std::string::npos;
    if (!is_others) remove_left_over(spec.container);
    return done ? Error{Code::failed_precondition, tried + ": " + run.reason(*done)}
                : Error{done.error().code, tried + ": " + done.error().message};
  }
  const Result<Container> container = find(spec.container);
  return container ? Result<ProcessId>(container->process) : container.error();
}

Result<void> check_runc_options(const std::string& tried, const CheckpointOptions& options) {
  return refuse_options(
      tried, options, {"--tcp-established", "--shell-job", "--file-locks", "--ext-unix-sk"},
      {{"--external", "runc itself names the bind mounts of the bundle's config.json to CRIU"},
       {"--root", "runc takes a container's root from its bundle"},
       {"--log-level", "runc has CRIU log at level 4"},
       {"--manage-cgroups", "runc manages the cgroups of its containers"},
       {"--inherit-fd", "runc chooses the files of its containers"}},
      "runc has no flag for it, but CRIU reads it from /etc/criu/runc.conf");
}

Result<void> RuncRuntime::may_dump(const DumpSpec& spec) {
  const std::string tried = "dump container " + name_of_container(spec);
  Result<void> good = check_runc_options(tried, spec.options);
  if (good) {
    good =
        check_rounds(spec, spec.criu ? spec.criu->folder : options_.criu_folder, options_.timeout);
  }
  if (const Result<json> state = read_state(tried, spec.container); good && state) {
    good = check_restorable(tried, bundle_of(*state));
  }
  const Result<probe::Process> process =
      good ? check_target(spec) : Result<probe::Process>(good.error());
  return process ? Result<void>() : process.error();
}

Result<DumpOutcome> RuncRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  const std::string tried = "could not dump container " + name_of_container(spec);
  if (Result<void> good = may_dump(spec); !good) {
    return good.error();
  }
  const std::string criu_folder = spec.criu ? spec.criu->folder : options_.criu_folder;
  // Returns the arguments of `runc checkpoint` with these additional flags.
  const auto words_of = [&](const std::string& images_dir, std::vector<std::string> flags) {
    std::vector<std::string> words{"checkpoint", "--image-path", images_dir, "--work-path",
                                   spec.work_dir};
    for (std::string& flag : runc_flags(spec.options)) words.push_back(std::move(flag));
    for (std::string& flag : flags) words.push_back(std::move(flag));
    words.push_back(spec.container);
    return words;
  };
  const std::vector<std::string> flags =
      spec.leave_running ? std::vector<std::string>{"--leave-running"} : std::vector<std::string>{};
  const std::string log = spec.work_dir + kRuncLog;
  ContainerCall checkpoint =
      call(tried, spec.work_dir, words_of(spec.images_dir, flags), criu_folder);
  checkpoint.round = [=, this](const PreDumpPlace& place) {
    std::vector<std::string> round{"--pre-dump"};
    if (!place.parent.empty()) round.insert(round.end(), {"--parent-path", place.parent});
    return command(log, words_of(place.images_dir, round), criu_folder);
  };
  checkpoint.after_rounds = [=, this](const std::string& last, Command& dump) -> Result<void> {
    std::vector<std::string> told = flags;
    told.insert(told.end(), {"--parent-path", last});
    dump = command(log, words_of(spec.images_dir, told), criu_folder);
    return {};
  };
  checkpoint.images_dir = spec.images_dir;
  checkpoint.log_path = spec.work_dir + kCriuLog;
  checkpoint.stats_path = spec.work_dir + "/stats-dump";
  checkpoint.run = [&](const Command& limits) { return run_proved(limits, spec); };
  Result<DumpOutcome> outcome = dump_container(spec, std::move(checkpoint), observer);
  // Nothing would read from new pipes as long as the container runs.
  if (outcome && had_pipes(spec.images_dir)) {
    outcome->warnings.push_back(
        "the input or output of container " + name_of_container(spec) +
        " is a pipe: after a restore it is /dev/null of this machine, and CRIU cannot dump the "
        "container again; start it with </dev/null >/dev/null 2>&1, and let it write its log "
        "into a file of its own");
  }
  const std::string folder = folder_of(spec.container);
  std::error_code error;
  if (outcome && !spec.leave_running && std::filesystem::exists(folder, error)) {
    outcome->warnings.push_back("runc could not remove " + folder + ": runc delete " +
                                spec.container + " before you restore it");
  }
  return outcome;
}

Result<void> RuncRuntime::settle_dump(const DumpSpec& spec) {
  return settle_container_dump(spec, in_work_dirs(spec, kCriuLog));
}

Result<void> RuncRuntime::may_restore(const RestoreSpec& spec) {
  const std::string asked = "restore container " + name_of_container(spec);
  Result<void> good = check_runc_options(asked, spec.options);
  if (good) try_again_to_remove(spec.container);
  if (good)
    static_cast<void>(remove_half_restored(spec).ok());  // what stays is named by check_free()
  if (good) good = check_free(asked, spec.container);
  if (good) good = check_bundle(asked, spec.bundle);
  if (good) good = check_restorable(asked, spec.bundle);
  if (good) {
    good = preflight::check_host_names(asked, preflight::host_names_in(spec.bundle), spec.names);
  }
  return good;
}

Result<RestoreOutcome> RuncRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  if (Result<void> good = may_restore(spec); !good) {
    return good.error();
  }
  const Result<BundleRoot> root =
      prepare_root("restore container " + name_of_container(spec), spec.bundle);
  if (!root) {
    return root.error();
  }
  std::vector<std::string> words{"restore",      "--detach",      "--bundle",    spec.bundle,
                                 "--image-path", spec.images_dir, "--work-path", spec.work_dir};
  for (std::string& flag : runc_flags(spec.options)) {
    words.push_back(std::move(flag));
  }
  words.push_back(spec.container);
  ContainerCall restore =
      call("could not restore container " + name_of_container(spec), spec.work_dir,
           std::move(words), spec.criu ? spec.criu->folder : options_.criu_folder);
  restore.command.output_path = "/dev/null";
  restore.says_taken = kTaken;
  restore.images_dir = spec.images_dir;
  restore.log_path = spec.work_dir + kRestoreLog;
  restore.stats_path = spec.work_dir + "/stats-restore";
  const Result<std::string> config = read_file(spec.bundle + "/config.json");
  restore.cgroups = {cgroup_name(config ? *config : "", spec.container)};
  restore.run = [this, &spec](const Command& limits) {
    Result<CommandOutcome> done = run_command(limits);
    const bool killed = done && done->exit_status < 0;
    if (killed && runs_without_its_runc(spec)) done->exit_status = 0;
    return done;
  };
  const std::int64_t began_unix_ns = unix_ns();
  Result<RestoreOutcome> outcome = restore_container(spec, std::move(restore), observer);
  if (!outcome && outcome.error().code == Code::already_exists) return outcome;
  if (!outcome) {
    remove_left_over(spec.container);
    criu::remove_leftover_ghosts(spec.work_dir + kRestoreLog, began_unix_ns,
                                 places_in_bundle(spec.bundle));
    return outcome;
  }
  const Result<Container> container = find(spec.container);
  if (!container) {
    return container.error();
  }
  outcome->process = container->process;
  if (!root->made.empty()) {
    outcome->warnings.push_back(root->made);
  }
  if (root->read_only && !container->read_only_root) {
    outcome->warnings.push_back("container " + name_of_container(spec) +
                                " can now write to its root, which is read-only in its bundle: "
                                "CRIU before 4.2 does this; use CRIU 4.2 or later");
  }
  return outcome;
}

Result<void> RuncRuntime::rehearse(const RehearsalSpec& spec) {
  const std::string tried = "could not restore container " + name_of_container(spec);
  Result<void> good = check_runc_options(tried, spec.options);
  if (!good) return good;
  return rehearse_by_runc(spec, options_.criu_folder, options_.timeout, "", options_.program);
}

Result<bool> RuncRuntime::settle_restore(const RestoreSpec& spec, std::int64_t began_unix_ns) {
  if (!is_container_id(spec.container)) return true;
  for (const auto until = std::chrono::steady_clock::now() + kEndsAloneWithin;
       restore_runs(spec);) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kLookAloneEvery);
  }
  const Result<void> ended = criu::end_leftover_restore(spec.work_dir + kRestoreLog, {});
  if (!ended) return ended.error();
  if (Result<void> removed = remove_half_restored(spec); !removed) return removed.error();
  if (is_half_restored(spec.container)) {
    return Error{Code::unavailable,
                 "runc's folder " + folder_of(spec.container) + " cannot be removed"};
  }
  if (running(spec.container)) return true;  // it runs
  criu::remove_leftover_mounts(spec.work_dir);
  criu::remove_leftover_ghosts(spec.work_dir + kRestoreLog, began_unix_ns,
                               places_in_bundle(spec.bundle));
  return true;
}

Result<std::string> RuncRuntime::freeze(const FreezeSpec& spec) {
  return freeze_container(spec, true, "runc pause",
                          command("/dev/null", {"pause", spec.container}));
}

Result<std::string> RuncRuntime::unfreeze(const FreezeSpec& spec) {
  return freeze_container(spec, false, "runc resume",
                          command("/dev/null", {"resume", spec.container}));
}

}  // namespace

std::unique_ptr<Runtime> make_runc_runtime(RuncRuntimeOptions options) {
  return std::make_unique<RuncRuntime>(std::move(options));
}

}  // namespace kymo::runtime
