#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "daemon/database/store.h"

namespace kymo::daemon {

// Tells which dump and which restore is the first since kymod started. Those are cold
// (docs/diff.md).
//
// Threads: any.
class FirstRuns {
 public:
  // Returns true on the first call for each kind, and false after that.
  bool take(store::RunKind kind) {
    return !seen_[static_cast<std::size_t>(kind)].exchange(true, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<bool>, 2> seen_{};
};

}  // namespace kymo::daemon
