#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kymo {

// How a thread should run.
struct ThreadPlace {
  int realtime_priority = 0;  // of SCHED_FIFO; 0: none
  int nice = 0;               // if it has no real-time priority; 0: unchanged
  int cpu = -1;               // the CPU that it is pinned to; -1: any
};

// Sets up the calling thread. Children that it forks inherit neither the priority nor a negative
// nice value. For what the system refuses, a line with the reason and what would allow it is added
// to `warnings`.
void set_up_this_thread(const ThreadPlace& place, std::vector<std::string>* warnings);

// Gives the calling thread back to the fair scheduler, with `nice` and a short slice. Returns false
// if it had no real-time priority.
bool leave_realtime(int nice);

// Removes `cpu` (-1: none) from the CPUs of `thread`, if another CPU is left. On a CPU with a
// real-time thread that spins, `thread` would not run for most of a second.
void keep_off_cpu(pthread_t thread, int cpu);

// Measures the CPU time of the calling thread. A real-time thread that uses more than expected
// takes it from all other threads.
//
// Threads: the one that it measures.
// Cost:    a comparison; a system call once a second.
class RealtimeBound {
 public:
  static constexpr std::uint64_t kWindowNs = 1'000'000'000;

  // `max_share` 1: no limit.
  explicit RealtimeBound(double max_share) : max_share_(max_share) {}

  // The share of a CPU that the thread has used since the last measurement, if this is more than
  // allowed; else 0. Measures once a second.
  [[nodiscard]] double exceeded(std::uint64_t now_ns) {
    return max_share_ < 1 && now_ns - begun_ns_ >= kWindowNs ? look(now_ns) : 0;
  }

 private:
  [[nodiscard]] double look(std::uint64_t now_ns);

  double max_share_;
  std::uint64_t begun_ns_ = 0;
  std::uint64_t cpu_at_begin_ns_ = 0;
};

}  // namespace kymo
