#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace kymo {

// The CPU time that the calling thread has had. 0: the kernel does not say it. Cost: a system call.
inline std::uint64_t thread_cpu_ns() {
  timespec used{};
  return ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0 ? to_nanos(used) : 0;
}

// When a thread that looks again and again at something must look again. What a look costs depends on how much there is to
// see, such as the threads of a process. So the thread rests after each look, `rest` times as long as the look took of the
// CPU: all looks together take at most one part in `rest` + 1 of a CPU, however much there is to see.
//
// Threads: one at a time.
class LookPace {
 public:
  // The times are those of the caller's clock, and the CPU time that its thread has had. `interval_ns`: at least 1; looks
  // are due at its multiples after `now_ns`.
  LookPace(std::uint64_t interval_ns, std::uint64_t rest, std::uint64_t now_ns,
           std::uint64_t cpu_ns)
      : interval_ns_(interval_ns), rest_(rest), begin_ns_(now_ns), cpu_ns_(cpu_ns) {}

  // To be called after each look. Returns when the next one is due.
  [[nodiscard]] std::uint64_t next_ns(std::uint64_t now_ns, std::uint64_t cpu_ns) {
    const std::uint64_t took_ns = cpu_ns - std::min(std::exchange(cpu_ns_, cpu_ns), cpu_ns);
    const std::uint64_t since_ns = now_ns - std::min(begin_ns_, now_ns);
    const std::uint64_t tick_ns = begin_ns_ + (since_ns / interval_ns_ + 1) * interval_ns_;
    return std::max(tick_ns, now_ns + rest_ * took_ns);
  }

 private:
  std::uint64_t interval_ns_;
  std::uint64_t rest_;
  std::uint64_t begin_ns_;
  std::uint64_t cpu_ns_;
};

}  // namespace kymo
