#include "checkpoint/runtimes/process/process_runtime.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/claims.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/patience.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "checkpoint/criu/drive/inherited.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/pstree.h"
#include "checkpoint/criu/repair/ghosts.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/process/freeze.h"
#include "checkpoint/runtimes/process/half_restored.h"
#include "checkpoint/runtimes/process/reaper.h"
#include "checkpoint/runtimes/process/restore_reads.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/launch.h"
#include "checkpoint/runtimes/shared/log_phases.h"
#include "checkpoint/runtimes/shared/network_lock.h"
#include "checkpoint/runtimes/shared/pre_dump.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "checkpoint/runtimes/shared/watch_images.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

// Dumps with CRIU and reports the progress. Sets `image_bytes` to the size of the images on disk.
Result<criu::DumpReply> call_dump(const criu::Client& client, const DumpSpec& spec,
                                  const Observer& observer, const criu::Notified& notified,
                                  const std::string& parent, std::uint64_t& image_bytes) {
  const Result<std::chrono::milliseconds> left = time_left(spec);
  if (!left) {
    return left.error();
  }
  criu::DumpRequest request;
  request.parent = parent;
  request.pid = spec.process.pid;
  request.images_dir = spec.images_dir;
  request.work_dir = spec.work_dir;
  request.leave_running = spec.leave_running;
  request.sync = spec.sync;
  request.time_limit = *left;
  request.cancel = spec.cancel;
  request.options = spec.options;
  request.held = spec.held;
  request.answered = observer.answered;
  request.working = observer.working;
  if (spec.prove) {
    request.prove = [&spec](std::chrono::milliseconds until) {
      return spec.prove(spec.images_dir, until);
    };
  }
  if (spec.stream) {
    request.stream = spec.stream;
    request.streamed = [&](const criu::Streamed& so_far) {
      if (observer.image_bytes) {
        observer.image_bytes(so_far.stored);
      }
      if (observer.moved) {
        observer.moved(so_far.bytes, so_far.page_bytes, true);
      }
      if (observer.streamed) {
        observer.streamed(so_far);
      }
    };
    Result<criu::DumpReply> reply = client.dump(request, notified);
    if (reply) {
      image_bytes = reply->streamed.stored;
    }
    return reply;
  }
  auto watcher = watch_images(spec.images_dir, observer, spec.held);
  if (!watcher) {
    return watcher.error();
  }
  Result<criu::DumpReply> reply = client.dump(request, notified);
  image_bytes = (*watcher)->finish();
  return reply;
}

// Makes the requested rounds of pre-dump, then the dump.
Result<criu::DumpReply> call_rounds(const criu::Client& client, const DumpSpec& spec,
                                    const Observer& observer, const criu::Notified& notified,
                                    DumpOutcome& outcome) {
  if (spec.pre_dumps == 0) {
    return call_dump(client, spec, observer, notified, "", outcome.image_bytes);
  }
  if (Result<void> tracked =
          check_tracked(client, "pre-dump process " + std::to_string(spec.process.pid));
      !tracked) {
    return tracked.error();
  }
  Result<PreDumps> before = pre_dump(spec, observer, write_round_by(client, spec));
  if (!before) {
    return before.error();
  }
  Result<criu::DumpReply> reply =
      call_dump(client, spec, observer, notified, before->last, outcome.image_bytes);
  for (const PreDumpRound& round : before->rounds) {
    outcome.image_bytes += round.image_bytes;
  }
  outcome.pre_dumps = std::move(before->rounds);
  return reply;
}

Result<criu::RestoreReply> call_restore(const criu::Client& client, const RestoreSpec& spec,
                                        pid_t root, const Observer& observer,
                                        const criu::Notified& notified) {
  criu::RestoreRequest request;
  request.images_dir = spec.images_dir;
  request.work_dir = spec.work_dir;
  request.options = spec.options;
  request.cancel = spec.cancel;
  request.answered = observer.answered;
  const std::string inventory = spec.images_dir + "/inventory.img";
  request.stream = criu::stored_path(inventory) != inventory;  // CRIU itself cannot read them
  std::optional<RestoreReads> reads;
  if (request.stream) {
    request.streamed = [&](const criu::Streamed& so_far) {
      if (observer.moved) {
        observer.moved(so_far.bytes, so_far.page_bytes, true);
      }
      if (observer.streamed) {
        observer.streamed(so_far);
      }
    };
  } else if (observer.moved) {
    reads.emplace(root, [&](std::uint64_t bytes) { observer.moved(bytes, bytes, false); });
  }
  return client.restore(request, notified);
}

// CRIU's log does not say so if it fails because of the session. A full disk, a signal or a deadline has nothing to do with
// it.
Error with_session(Error error, const DumpSpec& spec, const DumpTarget& before) {
  if (error.code != Code::failed_precondition) return error;
  if (before.process.session != before.process.pid && !spec.options.shell_job) {
    error.message +=
        "; it is not the leader of its session, but a dump needs that: start it with kymo run or "
        "setsid";
  }
  return error;
}

class ProcessRuntime : public Runtime {
 public:
  explicit ProcessRuntime(ProcessRuntimeOptions options)
      : criu_(std::move(options.criu)), reaper_(Reaper::start(std::move(options.exited))) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& pid) override;
  Result<std::optional<ProcessId>> process_of(const std::string&) override {
    return std::optional<ProcessId>();
  }
  Result<void> may_dump(const DumpSpec& spec) override;
  Result<void> may_restore(const RestoreSpec& spec) override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<void> settle_dump(const DumpSpec& spec) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;
  Result<void> rehearse(const RehearsalSpec& spec) override;
  Result<std::string> freeze(const FreezeSpec& spec) override {
    return freeze_process(spec.process);
  }
  Result<std::string> unfreeze(const FreezeSpec& spec) override {
    return unfreeze_process(spec.process);
  }

 private:
  [[nodiscard]] criu::Client client(const std::optional<CriuProgram>& chosen) const {
    criu::ClientOptions options = criu_;
    if (chosen) {
      options.path = chosen->path;
    }
    return criu::Client(std::move(options));
  }

  const criu::ClientOptions criu_;
  Result<std::unique_ptr<Reaper>> reaper_;
  // The pids that running restores give to their processes. If two restores wanted the same pid,
  // the one that fails would kill the processes of the other.
  Claims<pid_t> restoring_;
  // Held from the start of a child until the reaper watches it, and while a child of a failed
  // restore is looked for and killed.
  std::mutex children_;
};

Result<ProcessId> ProcessRuntime::run(const RunSpec& spec) {
  if (!reaper_) {
    return reaper_.error();
  }
  const std::lock_guard lock(children_);
  const Result<pid_t> pid = launch(spec);
  if (!pid) {
    return pid.error();
  }
  const ProcessId process = identify(*pid);
  if (Result<void> watched = (*reaper_)->watch(process); !watched) {
    kill(*pid, SIGKILL);
    reap(*pid);
    return watched.error();
  }
  return process;
}

Result<Container> ProcessRuntime::find(const std::string& pid) {
  Container found;
  const char* const end = pid.data() + pid.size();
  const auto parsed = std::from_chars(pid.data(), end, found.process.pid);
  const std::string tried = "process " + pid;
  if (parsed.ec != std::errc() || parsed.ptr != end || found.process.pid <= 0) {
    return Error{Code::invalid_argument, tried + ": a pid is a number above 0"};
  }
  const Result<probe::Process> seen = probe::read_process(found.process.pid);
  if (!seen) return Error{seen.error().code, tried + ": " + seen.error().message};
  if (seen->kernel_thread) {
    return Error{Code::invalid_argument, tried + ": it is the kernel thread [" + seen->name +
                                             "]; only processes of programs can be dumped"};
  }
  found.process.start_ticks = seen->start_ticks;
  found.name = seen->name;
  found.command = seen->command;
  return found;
}

Result<void> ProcessRuntime::may_dump(const DumpSpec& spec) {
  const Result<probe::Process> process = check_target(spec);
  if (!process) {
    return process.error();
  }
  return spec.pre_dumps == 0
             ? Result<void>()
             : check_tracked(client(spec.criu),
                             "pre-dump process " + std::to_string(spec.process.pid));
}

Error same_pids(const RestoreSpec& spec) {
  return Error{Code::already_exists, "cannot restore " + spec.images_dir +
                                         ": another restore that is running needs the same pids; "
                                         "wait until it ends"};
}

// Looks whether what the options name exists. CRIU would find out only in the middle of the
// restore.
Result<void> check_places(const RestoreSpec& spec) {
  const std::string tried = "cannot restore " + spec.images_dir + ": ";
  struct stat seen {};
  for (const std::string& external : spec.options.external) {
    const std::size_t end = external.starts_with("mnt[") ? external.find("]:/") : external.npos;
    if (end == external.npos) continue;
    if (::stat(external.c_str() + end + 2, &seen) != 0) {
      return system_error(tried + "--external " + external, errno);
    }
  }
  const std::string& root = spec.options.root;
  if (root.empty()) return {};
  if (::stat(root.c_str(), &seen) != 0) return system_error(tried + "--root " + root, errno);
  if (S_ISDIR(seen.st_mode)) return {};
  return Error{Code::invalid_argument, tried + "--root " + root + ": it is not a folder"};
}

Result<void> ProcessRuntime::may_restore(const RestoreSpec& spec) {
  const auto tree = check_images(spec);
  if (!tree) return tree.error();
  if (!restoring_.claim_all(ids_of(*tree))) return same_pids(spec);
  if (Result<void> there = check_places(spec); !there) return there;
  const auto files = criu::open_inherited(spec.options.inherited);
  return files ? Result<void>() : files.error();
}

// Makes the file of CRIU's log. CRIU does not say why it cannot make it itself, but that the request is invalid.
// What has the file's name now is removed: it may be a pipe, or have another name elsewhere.
Result<void> make_log(const std::string& tried, const std::string& path) {
  const Result<FileDescriptor> log = create_anew(path, 0600);
  if (log) return {};
  return Error{
      log.error().code,
      tried + ": " + log.error().message + advice_on_full_disk(path, log.error().errno_value),
      log.error().errno_value};
}

Result<DumpOutcome> ProcessRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  if (!reaper_) {
    return reaper_.error();
  }
  const Result<DumpTarget> before = check_dump(spec);
  if (!before) {
    return before.error();
  }
  const std::string stats_path = spec.work_dir + "/stats-dump";
  const std::string log_path = spec.work_dir + "/dump.log";
  forget(stats_path);
  DumpOutcome outcome;
  LogClock clock;
  Scope scope("criu", {.category = "criu"});
  const Result<criu::DumpReply> reply =
      call_rounds(client(spec.criu), spec, observer, clock.listen(observer.notified), outcome);
  clock.criu_ended();
  scope.add_bytes(outcome.image_bytes);
  if (!reply) {
    scope.fail(reply.error().message);
  }
  scope.end();
  if (reply) {
    outcome.criu_time_ns = reply->criu_time_ns;
    outcome.criu_major_faults = reply->criu_major_faults;
    if (!reply->warning.empty()) {
      outcome.warnings.push_back(reply->warning);
    }
  } else if (Result<void> whole = conclude_failed_dump(
                 spec, *before, with_session(reply.error(), spec, *before), outcome);
             !whole) {
    add_dump_phases(log_path, {}, clock, observer);
    return whole.error();
  } else if (!outcome.failure->ended) {
    return outcome;
  }
  if (!spec.leave_running || outcome.failure) {
    conclude_ended_dump(spec, *before, outcome);
    (*reaper_)->wait_reaped(before->process.pid, kGoneWithin);
  }
  take_statistics(stats_path, outcome);
  add_dump_phases(log_path, outcome.stats, clock, observer);
  return outcome;
}

Result<void> ProcessRuntime::settle_dump(const DumpSpec& spec) {
  // Another process may have the pid by now, such as one that is being restored from an older
  // checkpoint.
  std::vector<pid_t> tree;
  if (probe::process_lives(spec.process.pid, spec.process.start_ticks)) {
    tree = probe::process_tree(spec.process.pid);
  }
  Result<void> all;
  const auto note = [&](const Result<void>& done) {
    if (all && !done) all = done;
  };
  for (const char* name : {"/pre-dump.log", "/dump.log"}) {
    for (const std::string& log : in_work_dirs(spec, name)) {
      note(criu::end_leftover_dump(log, tree));
    }
  }
  if (living_tracer(tree) != 0)
    return all;  // of another dump, or a debugger: nothing there is ours
  note(give_back_network(tree));
  note(unmap_criu(tree));
  return all;
}

// Says what became of the processes if CRIU died in the middle of a restore, when its log does not tell.
Error with_aftermath(Error error, const std::vector<criu::ImageProcess>& tree) {
  if (failures::of_error(error).id != "criu-died") return error;
  const bool left = std::any_of(tree.begin(), tree.end(), [](const criu::ImageProcess& process) {
    const Result<probe::Process> seen = probe::read_process(process.pid);
    return seen || seen.error().code != Code::not_found;
  });
  if (!left) error.message += "; nothing of the process is left, and it can be restored again";
  return error;
}

Result<RestoreOutcome> ProcessRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  if (!reaper_) {
    return reaper_.error();
  }
  const auto images = check_restore(spec);
  if (!images) {
    return images.error();
  }
  const auto claim = restoring_.claim_all(ids_of(*images));
  if (!claim) {
    return same_pids(spec);
  }
  // Check the pids again: a restore that held the claim before may have just ended.
  const auto tree = check_images(spec);
  if (!tree) {
    return tree.error();
  }
  const std::string stats_path = spec.work_dir + "/stats-restore";
  const std::string log_path = spec.work_dir + "/restore.log";
  forget(stats_path);
  if (Result<void> log = make_log("cannot restore " + spec.images_dir, log_path); !log) {
    return log.error();
  }
  LogClock clock;
  TimeOfCriu time;
  const std::int64_t began_unix_ns = unix_ns();
  Scope scope("criu", {.category = "criu"});
  const Result<criu::RestoreReply> reply = call_restore(client(spec.criu), spec, tree->front().pid,
                                                        observer, clock.listen(observer.notified));
  time.ended();
  clock.criu_ended();
  if (!reply) {
    scope.fail(reply.error().message);
    scope.end();
    add_restore_phases(log_path, {}, clock, observer);
    bool killed = false;
    {
      const std::lock_guard lock(children_);
      killed = kill_half_restored(tree->front().pid, time, **reaper_);
    }
    if (killed) {
      reap_within(tree->front().pid, kGoneWithin);
    }
    criu::remove_leftover_mounts(spec.work_dir);
    criu::remove_leftover_ghosts(log_path, began_unix_ns);
    return with_aftermath(reply.error(), *tree);
  }
  scope.end();
  RestoreOutcome outcome;
  outcome.criu_time_ns = reply->criu_time_ns;
  outcome.criu_major_faults = reply->criu_major_faults;
  outcome.process = identify(reply->pid);
  if (Result<void> watched = (*reaper_)->watch(outcome.process); !watched) {
    outcome.warnings.push_back(watched.error().message);
  }
  take_statistics(stats_path, outcome);
  add_restore_phases(log_path, outcome.stats, clock, observer);
  return outcome;
}

// The folders that are there: a restore makes those that are not.
std::vector<std::string> existing(const std::vector<std::string>& folders) {
  std::set<std::string> there;
  std::error_code error;
  for (std::filesystem::path folder : folders) {
    while (folder.has_relative_path() && !std::filesystem::is_directory(folder, error)) {
      folder = folder.parent_path();
    }
    there.insert(folder);
  }
  return {there.begin(), there.end()};
}

Result<void> ProcessRuntime::rehearse(const RehearsalSpec& spec) {
  criu::RehearsalRequest request;
  request.changed = existing(spec.changed);
  // The stage of a rehearsal is one mount namespace, and these processes get another.
  const bool hidden = spec.own_mounts && !spec.changed.empty();
  if (hidden ||
      std::find(request.changed.begin(), request.changed.end(), "/") != request.changed.end()) {
    return Error{
        Code::unimplemented,
        "a restore of " + spec.images_dir +
            " cannot be rehearsed, because it would change files in " +
            (hidden ? spec.changed.front() + " of the mount namespace of the processes" : "/")};
  }
  request.images_dir = spec.images_dir;
  request.work_dir = spec.work_dir;
  request.options = spec.options;
  request.time_limit = spec.time_limit;
  request.cancel = spec.cancel;
  return client(spec.criu).rehearse(request);
}

}  // namespace

std::unique_ptr<Runtime> make_process_runtime(ProcessRuntimeOptions options) {
  return std::make_unique<ProcessRuntime>(std::move(options));
}

}  // namespace kymo::runtime
