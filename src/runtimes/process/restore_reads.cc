#include "runtimes/process/restore_reads.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "probe/process_tree.h"

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

bool RestoreReads::pause() {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, kInterval, [this] { return stop_; });
}

void RestoreReads::follow() {
  std::optional<probe::ProcessTree> tree;
  std::uint64_t before = 0;
  while (pause()) {
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
