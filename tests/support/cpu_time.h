#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace kymo::test {

// The processor's time that all threads of this process take for `work`. Unlike the time on a clock
// it hardly depends on what else the machine does.
template <class Work>
std::chrono::nanoseconds cpu_time_of(Work work) {
  const auto now = [] {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const std::chrono::nanoseconds began = now();
  work();
  return now() - began;
}

}  // namespace kymo::test
