#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kymo {

inline constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

inline std::uint64_t to_nanos(const timespec& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * kNanosPerSecond +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// A negative duration becomes 0.
inline std::uint64_t to_nanos(std::chrono::nanoseconds duration) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count()));
}

// CLOCK_MONOTONIC in nanoseconds. Cost: a vDSO call, about 25 ns with the TSC.
inline std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return to_nanos(now);
}

// The wall clock, nanoseconds since 1970.
inline std::int64_t unix_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(to_nanos(now));
}

}  // namespace kymo
