#include "runtime/process_runtime.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "criu/pstree.h"
#include "kymo/scope.h"
#include "probe/directory_bytes.h"
#include "probe/process.h"
#include "runtime/launch.h"
#include "runtime/log_phases.h"
#include "runtime/process_checks.h"
#include "runtime/reaper.h"
#include "runtime/restore_reads.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a process that CRIU has killed may take to be gone: it has all its memory to give back.
constexpr milliseconds kGoneWithin{10'000};

// Nothing that lies in the directory after a failed dump may look like a checkpoint, or fill the
// disk.
void remove_images(const std::string& images_dir) {
  std::error_code error;
  std::vector<std::filesystem::path> images;
  for (const auto& entry : std::filesystem::directory_iterator(images_dir, error)) {
    if (entry.path().extension() == ".img") {
      images.push_back(entry.path());
    }
  }
  // First the one without which no reader takes the rest for a checkpoint.
  std::filesystem::remove(images_dir + "/inventory.img", error);
  for (const std::filesystem::path& image : images) {
    std::filesystem::remove(image, error);
  }
}

// Ends what a failed restore may have left behind. Only what descends from the root, which was free
// before and is our child: no other process is touched.
void clear_failed_restore(pid_t root) {
  const Result<probe::Process> left = probe::read_process(root);
  if (!left || left->parent != getpid()) {
    return;
  }
  std::vector<pid_t> tree = probe::process_tree(root);
  std::reverse(tree.begin(), tree.end());
  for (const pid_t member : tree) {
    kill(member, SIGKILL);
  }
  while (waitpid(root, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// An earlier run's statistics must not pass for this one's.
void forget(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

ProcessId identify(pid_t pid) {
  const Result<probe::Process> process = probe::read_process(pid);
  return {pid, process ? process->start_ticks : 0};
}

class ProcessRuntime : public Runtime {
 public:
  explicit ProcessRuntime(ProcessRuntimeOptions options)
      : client_(std::move(options.criu)), reaper_(Reaper::start(std::move(options.exited))) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;

 private:
  static Error failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error);
  Result<void> wait_gone(const ProcessId& process);

  criu::Client client_;
  Result<std::unique_ptr<Reaper>> reaper_;
};

Result<ProcessId> ProcessRuntime::run(const RunSpec& spec) {
  if (!reaper_) {
    return reaper_.error();
  }
  const Result<pid_t> pid = launch(spec);
  if (!pid) {
    return pid.error();
  }
  const ProcessId process = identify(*pid);
  if (Result<void> watched = (*reaper_)->watch(process); !watched) {
    kill(*pid, SIGKILL);
    while (waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return watched.error();
  }
  return process;
}

// CRIU ends the processes, the root first, only once every image is written (and inventory.img is
// the last): where it died between that and its answer, the checkpoint is whole and all that is
// left of them. CRIU must be gone: only then has every signal that it sent arrived.
bool was_dumped_after_all(const DumpSpec& spec, const DumpTarget& before) {
  return !spec.leave_running && std::filesystem::exists(spec.images_dir + "/inventory.img") &&
         !probe::process_lives(before.process.pid, before.process.start_ticks);
}

// Ends what a CRIU that died had not come to yet: it is in the images, too.
void end_the_rest(const DumpTarget& before) {
  for (const ProcessId& member : before.tree) {
    if (probe::process_lives(member.pid, member.start_ticks)) {
      kill(member.pid, SIGKILL);
    }
  }
}

Error ProcessRuntime::failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error) {
  const Scope scope("let it run on", {.category = "runtime"});
  remove_images(spec.images_dir);
  if (before.process.session != before.process.pid) {
    error.message +=
        "; it does not lead its session, which a dump needs: start it by kymo or setsid";
  }
  const Result<void> running = ensure_running(before);
  error.message += running ? "; the process runs on" : "; and " + running.error().message;
  return error;
}

// Waits for a dumped process to be gone: reaped where it was ours, else a zombie or gone.
Result<void> ProcessRuntime::wait_gone(const ProcessId& process) {
  const Scope scope("wait until it is gone", {.category = "runtime"});
  const auto until = steady_clock::now() + kGoneWithin;
  for (;;) {
    const Result<probe::Process> seen = probe::read_process(process.pid);
    if (!seen || seen->zombie() || seen->start_ticks != process.start_ticks) {
      break;
    }
    if (steady_clock::now() > until) {
      return Error{Code::internal, "process " + std::to_string(process.pid) +
                                       " was dumped and told to end, but still runs"};
    }
    std::this_thread::sleep_for(milliseconds(1));  // it is not always our child: nothing to wait on
  }
  (*reaper_)->wait_reaped(process.pid, kGoneWithin);
  return {};
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
  auto watcher = probe::DirectoryBytesWatcher::start(
      spec.images_dir,
      [&](std::uint64_t total) {
        if (observer.image_bytes) {
          observer.image_bytes(total);
        }
      },
      std::chrono::milliseconds(1),
      [&](std::uint64_t total, std::uint64_t pages) {
        if (observer.moved) {
          observer.moved(total, pages, false);
        }
      });
  if (!watcher) {
    return watcher.error();
  }
  DumpOutcome outcome;
  LogClock clock;
  Scope scope("criu", {.category = "criu"});
  const Result<criu::DumpReply> reply =
      client_.dump({spec.process.pid, spec.images_dir, spec.work_dir, spec.leave_running},
                   clock.listen(observer.notified));
  outcome.image_bytes = (*watcher)->finish();
  scope.add_bytes(outcome.image_bytes);
  if (!reply) {
    scope.fail(reply.error().message);
  }
  scope.end();
  if (reply) {
    outcome.criu_time_ns = reply->criu_time_ns;
  } else if (was_dumped_after_all(spec, *before)) {
    end_the_rest(*before);
    outcome.warnings.push_back("every image was written and the process ended, but then " +
                               reply.error().message);
  } else {
    add_dump_phases(log_path, {}, clock);
    return failed_dump(spec, *before, reply.error());
  }
  if (!spec.leave_running) {
    if (Result<void> gone = wait_gone({before->process.pid, before->process.start_ticks}); !gone) {
      outcome.warnings.push_back(gone.error().message);
    }
  }
  const Scope reading("read statistics", {.category = "runtime"});
  const Result<criu::DumpStats> stats = criu::read_dump_stats(stats_path);
  if (stats) {
    outcome.stats = *stats;
  } else {
    outcome.warnings.push_back("CRIU's statistics are missing: " + stats.error().message);
  }
  add_dump_phases(log_path, outcome.stats, clock);
  return outcome;
}

Result<RestoreOutcome> ProcessRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  if (!reaper_) {
    return reaper_.error();
  }
  const auto tree = check_restore(spec);
  if (!tree) {
    return tree.error();
  }
  const std::string stats_path = spec.work_dir + "/stats-restore";
  const std::string log_path = spec.work_dir + "/restore.log";
  forget(stats_path);
  LogClock clock;
  Scope scope("criu", {.category = "criu"});
  std::optional<RestoreReads> reads;
  if (observer.moved) {
    reads.emplace(tree->front().pid,
                  [&](std::uint64_t bytes) { observer.moved(bytes, bytes, false); });
  }
  const Result<criu::RestoreReply> reply =
      client_.restore({spec.images_dir, spec.work_dir}, clock.listen(observer.notified));
  reads.reset();
  if (!reply) {
    scope.fail(reply.error().message);
    scope.end();
    add_restore_phases(log_path, {}, clock);
    clear_failed_restore(tree->front().pid);
    return reply.error();
  }
  scope.end();
  RestoreOutcome outcome;
  outcome.criu_time_ns = reply->criu_time_ns;
  outcome.process = identify(reply->pid);
  if (Result<void> watched = (*reaper_)->watch(outcome.process); !watched) {
    outcome.warnings.push_back(watched.error().message);
  }
  const Scope reading("read statistics", {.category = "runtime"});
  const Result<criu::RestoreStats> stats = criu::read_restore_stats(stats_path);
  if (stats) {
    outcome.stats = *stats;
  } else {
    outcome.warnings.push_back("CRIU's statistics are missing: " + stats.error().message);
  }
  add_restore_phases(log_path, outcome.stats, clock);
  return outcome;
}

}  // namespace

std::unique_ptr<Runtime> make_process_runtime(ProcessRuntimeOptions options) {
  return std::make_unique<ProcessRuntime>(std::move(options));
}

}  // namespace kymo::runtime
