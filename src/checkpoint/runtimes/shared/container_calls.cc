#include "checkpoint/runtimes/shared/container_calls.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/inodes.h"
#include "base/patience.h"
#include "base/proc/cgroup.h"
#include "checkpoint/criu/drive/log.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/container_end.h"
#include "checkpoint/runtimes/shared/container_processes.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/killed_criu.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/shared/log_follower.h"
#include "checkpoint/runtimes/shared/log_phases.h"
#include "checkpoint/runtimes/shared/readable_images.h"
#include "checkpoint/runtimes/shared/watch_images.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

// Whether next to nothing can be written to the disk of the folder.
bool is_disk_full(const std::string& folder) {
  constexpr std::uint64_t kNextToNothing =
      std::uint64_t{64} << 10U;  // bytes: less than most dumps of a container need
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return false;
  return (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize < kNextToNothing;
}

// The folder to which a dump wrote and whose disk is full. Empty: there is none, or the call was no dump.
std::string folder_on_full_disk(const ContainerCall& call) {
  if (!call.writes_images) return {};
  for (std::string folder :
       {call.images_dir, std::filesystem::path(call.log_path).parent_path().string()}) {
    if (within(kDiskPatience, [folder] { return is_disk_full(folder); }).value_or(false)) {
      return folder;
    }
  }
  return {};
}

// What a command said of its failure, without CRIU's log. A runtime says of a CRIU that was killed only that it does not
// answer any more.
std::string said_by(const ContainerCall& call, const CommandOutcome& outcome) {
  std::string said = within(kDiskPatience, [reason = call.reason, outcome] {
                       return reason(outcome);
                     }).value_or("");
  if (said.empty()) return "it " + outcome.ended + " and does not say why";
  if (!failures::says_criu_died(said)) return said;
  return "its CRIU was killed, or crashed, before it could say why (" + said + ")";
}

// Whether a reason says that the container is somebody else's.
bool is_taken(const ContainerCall& call, const std::string& why) {
  return !call.says_taken.empty() && why.find(call.says_taken) != std::string::npos;
}

// Returns why the command failed: a full disk, the cause in CRIU's log, or, without any, what the command said.
// `out_of_memory`: the kernel has killed a process meanwhile because memory ran out.
Error failure(const ContainerCall& call, const CommandOutcome& outcome, bool out_of_memory) {
  std::string why = criu::cause_in(call.log_path, folder_on_full_disk(call),
                                   out_of_memory && !call.writes_images);
  const bool logged = !why.empty();
  if (!logged) why = said_by(call, outcome);
  Error error{Code::failed_precondition,
              call.runtime + " " + call.tried + ": " + why +
                  (logged ? " (log: " + call.log_path + ")" : std::string())};
  if (is_taken(call, why)) {
    error.code = Code::already_exists;
    return error;
  }
  const bool full = why.find("No space left") != std::string::npos;
  const auto disk_is_full = [&error] {
    error.code = Code::resource_exhausted;
    error.errno_value = ENOSPC;
  };
  if (full) disk_is_full();
  if (!full && logged) return error;
  // Without an inode, CRIU cannot make its log, and its runtime does not know why CRIU failed.
  const auto looked =
      within(kDiskPatience, [path = call.log_path] { return few_free_inodes(path); });
  const std::optional<std::uint64_t> few = looked.value_or(std::nullopt);
  if (few && (full || *few == 0)) {
    disk_is_full();
    error.message += advice_on_few_inodes(*few);
  }
  return error;
}

const std::string& growing_log(const ContainerCall& call) {
  return call.growing_log.empty() ? call.log_path : call.growing_log;
}

// Runs the command in its own scope, and reports the notifications in CRIU's log while it runs.
Result<CommandOutcome> call_command(const ContainerCall& call, const Observer& observer,
                                    LogClock& clock) {
  Scope scope(ScopeName{std::string_view{call.runtime}}, {.category = "runtime"});
  const std::string& growing = growing_log(call);
  const std::vector<std::string> earlier{call.stats_path, call.log_path, growing};
  if (!within(kDiskPatience, [earlier] {
        for (const std::string& path : earlier) forget(path);
        return true;
      })) {
    return Error{Code::unavailable, call.runtime + " " + call.tried + ": the disk of " +
                                        call.log_path + " does not answer, so nothing was begun"};
  }
  LogFollower log(growing, clock.listen(observer.notified));
  const std::uint64_t killed_before = probe::out_of_memory_kills();
  Result<CommandOutcome> outcome = call.run ? call.run(call.command) : run_command(call.command);
  clock.criu_ended();
  log.finish();
  if (call.collect) {
    const auto collect = [collect = call.collect, outcome] {
      collect(outcome ? &*outcome : nullptr);
      return true;
    };
    static_cast<void>(within(kDiskPatience, collect));
  }
  if (outcome && outcome->exit_status != 0) {
    outcome = failure(call, *outcome, probe::out_of_memory_kills() > killed_before);
  } else if (!outcome) {
    // containerd's own calls fail like this.
    const bool taken = is_taken(call, outcome.error().message);
    outcome = Error{taken ? Code::already_exists : outcome.error().code,
                    call.runtime + " " + call.tried + ": " + outcome.error().message,
                    outcome.error().errno_value};
  }
  if (!outcome) {
    scope.fail(outcome.error().message);
  }
  return outcome;
}

// Marks the command, so that it can be found later, and sets when and how it is ended: at the
// deadline of the dump or after the timeout of the runtime, whichever comes first.
Result<void> prepare(Command& command, const DumpSpec& spec, const DumpTarget& before,
                     const std::string& log_path) {
  const Result<std::chrono::milliseconds> left = time_left(spec);
  if (!left) {
    return left.error();
  }
  if (left->count() != 0 && (command.timeout.count() == 0 || *left < command.timeout)) {
    command.timeout = *left;
  }
  command.cancel = spec.cancel;
  command.environment.push_back(dump_mark(spec));
  std::vector<pid_t> tree;
  for (const ProcessId& member : before.tree) {
    tree.push_back(member.pid);
  }
  command.time_over = [log_path, tree = std::move(tree)](pid_t session) {
    const Scope ending("end it in good order", {.category = "runtime"});
    end_container_dump(log_path, tree, {session});
    return true;
  };
  return {};
}

// Runs one round of pre-dump. Renames CRIU's log, because the next round would overwrite it.
Result<std::uint64_t> call_round(const DumpSpec& spec, const ContainerCall& call,
                                 const DumpTarget& before, const PreDumpPlace& place) {
  ContainerCall round = call;
  round.command = call.round(place);
  if (Result<void> ready = prepare(round.command, spec, before, growing_log(call)); !ready) {
    return ready.error();
  }
  LogClock clock;
  if (const Result<CommandOutcome> done = call_command(round, {}, clock); !done) {
    return done.error();
  }
  const std::uint64_t criu_time_ns = add_dump_phases(call.log_path, {}, clock, {});
  const std::filesystem::path log(call.log_path);
  std::error_code error;
  std::filesystem::rename(
      log,
      log.parent_path() / (std::filesystem::path(place.images_dir).filename().string() + "-" +
                           log.filename().string()),
      error);
  return criu_time_ns;
}

// Makes the requested rounds of pre-dump, then runs the command of the dump.
Result<CommandOutcome> call_dump(const DumpSpec& spec, ContainerCall& call,
                                 const DumpTarget& before, const Observer& observer,
                                 LogClock& clock, DumpOutcome& outcome) {
  if (spec.pre_dumps != 0) {
    Result<PreDumps> rounds = pre_dump(spec, observer, [&](const PreDumpPlace& place) {
      return call_round(spec, call, before, place);
    });
    if (!rounds) {
      return rounds.error();
    }
    outcome.pre_dumps = std::move(rounds->rounds);
    if (Result<void> told = call.after_rounds(rounds->last, call.command); !told) {
      return told.error();
    }
  }
  if (Result<void> ready = prepare(call.command, spec, before, growing_log(call)); !ready) {
    return ready.error();
  }
  return call_command(call, observer, clock);
}

// runc, which all of them use, looks a fixed number of times whether the freezer of cgroup version 1
// has done its work, and gives up: beside busy threads one pause of 150 failed (measured with runc
// 1.1.5 and three busy loops on two CPUs). The container then runs.
constexpr int kFreezeTries = 5;

bool gave_up_freezing(const Result<void>& done) {
  return !done && done.error().message.find("unable to freeze") != std::string::npos;
}

}  // namespace

Result<void> check_rounds(const DumpSpec& spec, const std::string& criu_folder,
                          std::chrono::milliseconds timeout) {
  if (spec.pre_dumps == 0) {
    return {};
  }
  criu::ClientOptions options;
  options.path = criu_folder.empty() ? "criu" : criu_folder + "/criu";
  options.timeout = timeout;
  return check_tracked(criu::Client(std::move(options)),
                       "pre-dump container " + name_of_container(spec));
}

Result<DumpOutcome> dump_container(const DumpSpec& spec, ContainerCall call,
                                   const Observer& observer) {
  const Result<DumpTarget> before = check_dump(spec);
  if (!before) {
    return before.error();
  }
  if (spec.pre_dumps != 0 && !call.round) {
    return Error{Code::invalid_argument,
                 call.tried + ": --pre-dump: " + call.runtime + " makes no rounds of pre-dump"};
  }
  call.writes_images = true;
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  const bool was_frozen = freezer && freezer->frozen();
  auto watcher = watch_images(call.images_dir, observer, spec.held);
  if (!watcher) {
    return watcher.error();
  }
  DumpOutcome outcome;
  LogClock clock;
  const Result<CommandOutcome> done = call_dump(spec, call, *before, observer, clock, outcome);
  outcome.image_bytes = (*watcher)->finish();
  for (const PreDumpRound& round : outcome.pre_dumps) {
    outcome.image_bytes += round.image_bytes;
  }
  if (done) {
    outcome.command_time_ns = done->life_ns;
    outcome.runtime_time_ns = done->life_ns;
  } else {
    if (!was_frozen) {
      thaw_container(spec);  // a container that cannot be unfrozen is reported below
    }
    if (Result<void> whole = conclude_failed_dump(spec, *before, done.error(), outcome); !whole) {
      add_dump_phases(call.log_path, {}, clock, observer);
      return whole.error();
    }
    if (!outcome.failure->ended) return outcome;
  }
  if (!spec.leave_running || outcome.failure) conclude_ended_dump(spec, *before, outcome);
  if (!call.stats_path.empty()) take_statistics(call.stats_path, outcome);
  outcome.criu_time_ns = add_dump_phases(call.log_path, outcome.stats, clock, observer);
  return outcome;
}

Result<RestoreOutcome> restore_container(const RestoreSpec& spec, ContainerCall call,
                                         const Observer& observer) {
  call.command.cancel = spec.cancel;
  call.command.environment.push_back(restore_mark(spec));
  call.command.time_over = [log = growing_log(call), mark = restore_mark(spec)](pid_t session) {
    const Scope ending("end it in good order", {.category = "runtime"});
    return end_container_restore(log, mark, session);
  };
  const std::string asked = "restore container " + name_of_container(spec);
  const auto readable = within(kDiskPatience, [asked, images = call.images_dir] {
    return ReadableImages::of(asked, images);
  });
  if (!readable) {
    return Error{Code::unavailable, asked + ": the disk of " + call.images_dir +
                                        " does not answer; nothing was restored"};
  }
  if (!*readable) return readable->error();
  LogClock clock;
  const std::set<std::string> others = cgroups_in_use(call.cgroups);
  const Result<CommandOutcome> done = [&] {
    const KilledCriuWatch watch(growing_log(call));
    return call_command(call, observer, clock);
  }();
  if (!done) {
    if (done.error().code != Code::already_exists) {
      kill_half_restored_container(call.cgroups, others);
      criu::remove_leftover_mounts(std::filesystem::path(growing_log(call)).parent_path());
      detach_roots_of_killed_restores();  // before somebody else has runc delete the container
    }
    add_restore_phases(call.log_path, {}, clock, observer);
    return done.error();
  }
  RestoreOutcome outcome;
  outcome.command_time_ns = done->life_ns;
  outcome.runtime_time_ns = done->life_ns;
  if (!call.stats_path.empty()) take_statistics(call.stats_path, outcome);
  outcome.criu_time_ns = add_restore_phases(call.log_path, outcome.stats, clock, observer);
  return outcome;
}

Result<ProcessId> run_by_program(const Command& program, const std::vector<std::string>& remove,
                                 const RunSpec& spec,
                                 const std::function<std::string(const std::string&)>& reason,
                                 const std::function<Result<Container>(const std::string&)>& find) {
  const std::string tried = "run container " + spec.container;
  const std::string id_file = spec.work_dir + "/container-id";
  forget(id_file);
  const auto with = [&program](const std::vector<std::string>& words) {
    Command command = program;
    command.words.insert(command.words.end(), words.begin(), words.end());
    return command;
  };
  Command run = with({"run", "--detach", "--cidfile", id_file, "--name", spec.container});
  run.words.insert(run.words.end(), spec.command.begin(), spec.command.end());
  const Result<CommandOutcome> done = run_command(run);
  const Result<std::string> id = read_file(id_file);
  if (done && done->exit_status == 0) {
    const Result<Container> container = find(id ? last_line(*id) : spec.container);
    return container ? Result<ProcessId>(container->process) : container.error();
  }
  if (id && !id->empty()) {  // the program made the container before it failed
    Command removal = with(remove);
    removal.words.push_back(last_line(*id));
    static_cast<void>(run_command(removal).ok());
  }
  if (!done) return Error{done.error().code, tried + ": " + done.error().message};
  const std::string why = reason(done->errors);
  const bool taken = why.find("already in use") != std::string::npos;
  return Error{taken ? Code::already_exists : Code::failed_precondition, tried + ": " + why};
}

Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const std::function<Result<void>()>& call) {
  const std::string tried =
      std::string(frozen ? "freeze" : "unfreeze") + " container " + name_of_container(spec);
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (freezer && freezer->frozen() == frozen) {
    return Error{Code::failed_precondition,
                 tried + (frozen ? ": it is frozen already" : ": it is not frozen")};
  }
  Result<void> done = call();
  for (int tries = 1; tries < kFreezeTries && gave_up_freezing(done); ++tries) {
    done = call();
  }
  if (done) {
    return "by " + shown +
           (freezer ? ", the freezer of cgroup version " + std::to_string(freezer->version()) : "");
  }
  if (freezer && frozen) {
    static_cast<void>(freezer->set(false).ok());
  }
  return Error{done.error().code, tried + ": " + done.error().message};
}

Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const Command& command) {
  return freeze_container(spec, frozen, shown, [&]() -> Result<void> {
    const Result<CommandOutcome> done = run_command(command);
    if (!done) return done.error();
    if (done->exit_status == 0) return {};
    return Error{Code::failed_precondition, last_line(done->errors)};
  });
}

}  // namespace kymo::runtime
