#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "store/store.h"

namespace kymo::daemon {

// Which dump, and which restore, is the daemon's first: the kernel and CRIU start from the cold.
//
// Threads: any.
class FirstRuns {
 public:
  // Whether this is the first of its kind; true once.
  bool take(store::RunKind kind) {
    return !seen_[static_cast<std::size_t>(kind)].exchange(true, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<bool>, 2> seen_{};
};

}  // namespace kymo::daemon
