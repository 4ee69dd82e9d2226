#include "checkpoint/runtimes/process/half_restored.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/proc/process.h"
#include "checkpoint/criu/repair/connections.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
constexpr int kLooks = 50;  // one second in total

// Looks again while the answer is unknown, and not only that there is no process.
template <class Look>
auto look_until_known(Look look) {
  auto seen = look();
  for (int i = 0; i < kLooks && !seen && seen.error().code != Code::not_found; ++i) {
    std::this_thread::sleep_for(kLookEvery);
    seen = look();
  }
  return seen;
}

}  // namespace

// The kernel cuts start times in the same way.
std::uint64_t TimeOfCriu::now() {
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(since_boot.tv_sec) * ticks +
         static_cast<std::uint64_t>(since_boot.tv_nsec) * ticks / kSecond;
}

bool kill_half_restored(pid_t root, const TimeOfCriu& time, Reaper& reaper) {
  const auto left = look_until_known([root] { return probe::read_process(root); });
  if (!left || left->parent != ::getpid() || !time.contains(left->start_ticks) ||
      reaper.watches(root)) {
    return false;
  }
  const auto whole = look_until_known([root] { return probe::whole_process_tree(root); });
  std::vector<pid_t> tree = whole ? *whole : probe::process_tree(root);
  std::reverse(tree.begin(), tree.end());
  for (const pid_t member : tree) criu::keep_peers_waiting(member);
  for (const pid_t member : tree) ::kill(member, SIGKILL);
  return true;
}

}  // namespace kymo::runtime
