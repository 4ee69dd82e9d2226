#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace kymo::test {

// The CPU time that all threads of this process use for `work`. Unlike the elapsed time, it hardly
// depends on other programs.
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
