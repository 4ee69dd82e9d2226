#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/patience.h"
#include "kymo/result.h"

namespace kymo {

// How long a request waits for the disk that takes its result: until it is cancelled or its
// deadline has passed. The disk gets at least kDiskPatience from the construction on.
class DiskWait {
 public:
  // `cancel` may be null. `deadline_ns`: a time of monotonic_ns(); 0: none.
  DiskWait(const Cancellation* cancel, std::uint64_t deadline_ns)
      : cancel_(cancel), until_ns_(deadline_ns == 0 ? 0 : std::max(deadline_ns, soonest_ns())) {}

  [[nodiscard]] bool is_over() const {
    return is_asked(cancel_) || (until_ns_ != 0 && monotonic_ns() >= until_ns_);
  }
  // Why it is over.
  [[nodiscard]] Code code() const {
    return is_asked(cancel_) ? Code::cancelled : Code::deadline_exceeded;
  }

 private:
  static std::uint64_t soonest_ns() {
    constexpr std::chrono::nanoseconds kPatience = kDiskPatience;
    return monotonic_ns() + static_cast<std::uint64_t>(kPatience.count());
  }

  const Cancellation* cancel_;
  std::uint64_t until_ns_;
};

}  // namespace kymo
