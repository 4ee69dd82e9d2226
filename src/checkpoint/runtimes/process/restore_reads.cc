#include "checkpoint/runtimes/process/restore_reads.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/look_pace.h"
#include "base/proc/process_tree.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kInterval{2};

}  // namespace

RestoreReads::RestoreReads(pid_t root, Report report)
    : root_(root), report_(std::move(report)), thread_([this] { follow(); }) {}

RestoreReads::~RestoreReads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

bool RestoreReads::pause(std::uint64_t until_ns) {
  const std::uint64_t now_ns = monotonic_ns();
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, std::chrono::nanoseconds(until_ns - std::min(now_ns, until_ns)),
                            [this] { return stop_; });
}

void RestoreReads::follow() {
  std::optional<probe::ProcessTree> tree;
  std::uint64_t before = 0;
  constexpr std::uint64_t kRest = 99;  // it looks beside the view inside the request: 1 % of a CPU
  LookPace pace(to_nanos(kInterval), kRest, monotonic_ns(), thread_cpu_ns());
  while (pause(pace.next_ns(monotonic_ns(), thread_cpu_ns()))) {
    if (!tree) {
      Result<probe::ProcessTree> opened = probe::ProcessTree::open(root_);
      if (!opened) continue;
      tree = std::move(opened).value();
    }
    probe::TreeTotals totals;
    if (!tree->read(monotonic_ns(), &totals)) return;
    if (totals.read_bytes > before) {
      before = totals.read_bytes;
      report_(before);
    }
  }
}

}  // namespace kymo::runtime
