#pragma once

#include <fcntl.h>

#include <cstdio>
#include <string>
#include <utility>

#include "kymo/result.h"
#include "recorder/sampling/recover/ring_aside.h"

namespace kymo {

// A ring that a killed program left at `path`, moved aside while start() makes its own. It gets its
// name back if start() fails, because a recovery looks for it there.
class LeftRing {
 public:
  explicit LeftRing(std::string path) : path_(std::move(path)) {
    if (path_.empty()) {
      return;
    }
    // If this fails, for example because the ring is in use, RingMemory::create_file() refuses, too,
    // and says why.
    if (Result<std::string> aside = move_ring_aside(path_)) {
      aside_ = *std::move(aside);
    }
  }
  ~LeftRing() {
    if (!aside_.empty()) {
      // Not rename(2): another recorder may have made a ring at `path` meanwhile.
      static_cast<void>(
          ::renameat2(AT_FDCWD, aside_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE));
    }
  }
  LeftRing(const LeftRing&) = delete;
  LeftRing& operator=(const LeftRing&) = delete;

  // Returns where the ring stays from now on; empty if there was none.
  std::string leave_aside() { return std::exchange(aside_, {}); }

 private:
  std::string path_;
  std::string aside_;
};

}  // namespace kymo
