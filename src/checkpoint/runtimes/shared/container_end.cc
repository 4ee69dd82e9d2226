#include "checkpoint/runtimes/shared/container_end.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/patience.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/network_lock.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/session.h"

namespace kymo::runtime {
namespace {

using std::chrono::steady_clock;

// How long a runtime may take to end by itself after its CRIU has ended.
constexpr std::chrono::milliseconds kEndsByItself{5000};
constexpr std::chrono::milliseconds kEndLookEvery{5};
// A killed process that has waited for a disk this long ends only when the disk answers.
constexpr std::chrono::milliseconds kStuckAfter{500};

// Whether CRIU has written to its log. An existing file is not enough, because podman makes an
// empty one first. False also if the disk of the log does not answer.
bool criu_has_begun(const std::string& log_path) {
  const auto begun = within(kDiskPatience, [log_path] {
    struct stat log {};
    return ::lstat(log_path.c_str(), &log) == 0 && S_ISREG(log.st_mode) && log.st_size != 0;
  });
  return begun.value_or(false);
}

// Whether it waits there for a while, and not for a disk that is only slow.
bool waits_for_its_disk(pid_t pid) {
  const auto until = steady_clock::now() + kDiskPatience;
  while (probe::waits_in_kernel(pid)) {
    if (steady_clock::now() > until) return true;
    std::this_thread::sleep_for(kEndLookEvery);
  }
  return false;
}

}  // namespace

void end_container_dump(const std::string& log_path, const std::vector<pid_t>& tree,
                        const std::vector<pid_t>& sessions) {
  const auto until = steady_clock::now() + kEndsByItself;
  while (steady_clock::now() < until) {
    const Result<void> ended = criu::end_leftover_dump(log_path, tree);
    if (members_of(sessions).empty()) {
      return;
    }
    if (!ended && ended.error().code == Code::deadline_exceeded) {
      break;  // CRIU was killed and waits for its disk
    }
    // A CRIU that has not begun can be killed. Stop the sessions first, so that it cannot begin
    // between the check and the kill.
    const std::vector<pid_t> stopped = stop_sessions(sessions);
    if (!criu_has_begun(log_path)) {
      break;
    }
    continue_all(stopped);
    std::this_thread::sleep_for(kEndLookEvery);
  }
  kill_sessions(sessions);
}

bool end_container_restore(const std::string& log_path, const std::string& mark, pid_t session) {
  // Wait even if CRIU has not begun, because a runtime that is killed leaves its mounts behind.
  for (const auto until = steady_clock::now() + kEndsByItself; steady_clock::now() < until;) {
    const Result<void> ended = criu::end_leftover_restore(log_path, {});
    const std::vector<pid_t> left = members_of({session});
    if (left.empty()) {
      return ended || ended.error().code != Code::deadline_exceeded;
    }
    // Its runtime waits for it.
    if (std::any_of(left.begin(), left.end(), waits_for_its_disk)) break;
    std::this_thread::sleep_for(kEndLookEvery);
  }
  kill_sessions({session});
  // Limit the time: a process that waits for a stalled disk ends only when the disk answers.
  auto moved = steady_clock::now();  // the last time at which one of them did not wait for a disk
  bool stuck = false;
  for (const auto until = steady_clock::now() + kEndsByItself; steady_clock::now() < until;) {
    const std::vector<pid_t> sessions = sessions_with(mark);
    const std::vector<pid_t> left = members_of(sessions);
    if (left.empty()) {
      break;
    }
    kill_sessions(sessions);
    const auto now = steady_clock::now();
    const bool all_wait = std::all_of(left.begin(), left.end(),
                                      [](pid_t one) { return probe::waits_in_kernel(one); });
    if (!all_wait) moved = now;
    stuck = now - moved > kStuckAfter;
    if (stuck) break;
    std::this_thread::sleep_for(kEndLookEvery);
  }
  if (stuck) return false;
  const Result<void> ended = criu::end_leftover_restore(log_path, {});
  return ended || ended.error().code != Code::deadline_exceeded;
}

std::string restore_mark(const RestoreSpec& spec) {
  return "KYMO_RESTORE=" + spec.images_dir;
}

std::string dump_mark(const DumpSpec& spec) {
  return "KYMO_DUMP=" + spec.images_dir;
}

Result<void> settle_container_dump(const DumpSpec& spec,
                                   const std::vector<std::string>& log_paths) {
  std::vector<pid_t> tree;
  if (probe::process_lives(spec.process.pid, spec.process.start_ticks)) {
    tree = probe::process_tree(spec.process.pid);
  }
  for (const std::string& log : log_paths) {
    end_container_dump(log, tree, sessions_with(dump_mark(spec)));
  }
  if (living_tracer(tree) != 0) return {};  // of another dump, or a debugger: nothing there is ours
  Result<void> back = give_back_network(tree);
  thaw_container(spec);
  Result<void> unmapped = spec.frozen ? Result<void>() : unmap_criu(tree);
  return back ? unmapped : back;
}

void thaw_container(const DumpSpec& spec) {
  if (spec.frozen || !probe::process_lives(spec.process.pid, spec.process.start_ticks)) {
    return;
  }
  if (living_tracer(probe::process_tree(spec.process.pid)) != 0) return;  // who may have frozen it
  if (const Result<Freezer> freezer = Freezer::of(spec.process.pid); freezer && freezer->frozen()) {
    static_cast<void>(freezer->set(false).ok());
  }
}

}  // namespace kymo::runtime
