#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

// How the profiled programs measure the time of each of their functions.
namespace own_time {

inline std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t cpu_ns() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// Uses the CPU for this time, inlined into the calling function. Returns the time that it took.
[[gnu::always_inline]] inline std::uint64_t burn(std::uint64_t ns) {
  constexpr int kTurns = 20'000;
  const std::uint64_t begin = cpu_ns();
  std::uint64_t now = begin;
  while (now - begin < ns) {
    for (int i = 0; i < kTurns; ++i) asm volatile("");  // keeps the compiler from removing the loop
    now = cpu_ns();
  }
  return now - begin;
}

// Writes lines "NAME NANOSECONDS". The last one has the CPU time of the whole process.
inline void write(const char* path, const std::map<std::string, std::uint64_t>& times) {
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return;
  for (const auto& [name, ns] : times) {
    std::fprintf(file, "%s %llu\n", name.c_str(), static_cast<unsigned long long>(ns));
  }
  std::fprintf(file, "all %llu\n",
               static_cast<unsigned long long>(read_clock(CLOCK_PROCESS_CPUTIME_ID)));
  std::fclose(file);
}

}  // namespace own_time
