#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kymo {

// How a thread is to run.
struct ThreadPlace {
  int realtime_priority = 0;  // of SCHED_FIFO; 0: none
  int nice = 0;               // where it has no real-time priority; 0: as it is
  int cpu = -1;               // that it is pinned to; -1: any
};

// Sets the calling thread up so; no child that it forks inherits the priority or a negative nice
// value. What the system refuses is added to `warnings` as one line with the reason and what would
// allow it.
void set_up_this_thread(const ThreadPlace& place, std::vector<std::string>* warnings);

// Gives the calling thread back to the fair scheduler, with `nice` and a short slice. False where
// it had no real-time priority.
bool leave_realtime(int nice);

// Leaves `thread` every CPU that it has but `cpu` (-1: none), if another is left: behind a
// real-time thread that spins there it would not run for most of a second.
void keep_off_cpu(pthread_t thread, int cpu);

// Measures the CPU time of the calling thread: a real-time thread that uses more than was expected
// of it takes it from everybody else.
//
// Threads: the one that it measures. Cost: a comparison; a system call once a second.
class RealtimeBound {
 public:
  static constexpr std::uint64_t kWindowNs = 1'000'000'000;

  // 1: there is no bound.
  explicit RealtimeBound(double max_share) : max_share_(max_share) {}

  // The share of a CPU that the thread has used since the last look, where that is more than
  // allowed; else 0. Looks once a second.
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
