#pragma once

#include <cstdint>

namespace kymo {

// Tells a program that was stopped as a whole from a collector that only ran late, and finds out
// how long a restored process was away.
//
// The collector calls judge() when a tick is taken more than kMinNs late, when the clock went
// back, and when CLOCK_MONOTONIC and the wall clock have moved apart. The program was frozen in two
// cases:
//  - It is another process than before (a restore): the kernel's start time of the process has
//    changed, or the CPU time of the thread went back.
//  - The collector's thread was neither running nor waiting for a CPU for at least half of the
//    lateness (/proc/thread-self/schedstat), and the whole process used less CPU time than a quarter
//    of it. This is how a checkpoint that leaves the process running (CRIU's code uses a little CPU
//    time in it), SIGSTOP, a cgroup freezer and a paused machine look. On a busy machine, the
//    thread waits for a CPU or, if its CPU is paused, other threads run.
//
// After a restore, CLOCK_MONOTONIC may be that of another machine or another boot. If it disagrees
// with the wall clock about the time away, the wall clock is believed. `clock_shift_ns` is what
// must then be added to the recording's start, on CLOCK_MONOTONIC, so that the recording's own
// clock goes on.
// On the same machine, CRIU restores into a time namespace in which CLOCK_MONOTONIC stood still
// meanwhile. It is then possible that no tick is late. The only sign is that the two clocks have
// moved apart.
//
// Threads: only the collector's.
// Cost:    note() and clocks_diverged() are one comparison each, plus 20 us at most once a second,
//          2 us (26 us with a thousand threads) at most each 5 ms, and a vDSO call at most once a
//          millisecond.
class Standstill {
 public:
  static constexpr std::uint64_t kMinNs = 20'000'000;
  // How far the clocks may disagree before the wall clock is believed: the wall clock can be
  // slewed.
  static constexpr std::uint64_t kClockSlackNs = 20'000'000;
  static constexpr std::uint64_t kLookEveryNs = 1'000'000;
  static constexpr std::uint64_t kCountEveryNs = 5'000'000;

  struct Verdict {
    bool frozen = false;
    bool restored = false;
    std::int64_t clock_shift_ns = 0;
  };

  // What the thread has used of the processors.
  struct Use {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;  // for a CPU
    bool known = false;
  };
  // Where it reads what it judges by.
  struct Source {
    Use (*use)();
    std::uint64_t (*process_cpu_ns)();  // of all threads
    std::uint64_t (*cpus)();
    std::uint64_t (*process_start)();  // clock ticks since boot
    std::int64_t (*unix_ns)();
  };
  // The calling thread and the machine.
  static const Source kSystem;

  explicit Standstill(std::uint64_t interval_ns, const Source& source = kSystem);

  // The collector is on time at `now_ns`: its CPU use is counted from here on.
  void note(std::uint64_t now_ns) {
    if (now_ns - counted_ns_ >= kCountEveryNs) [[unlikely]] {
      count(now_ns);
    }
  }
  // Whether the wall clock has moved by more than kClockSlackNs against `now_ns` since the last
  // look. The cause is a restore, or somebody set the wall clock; judge() tells which.
  [[nodiscard]] bool clocks_diverged(std::uint64_t now_ns) {
    return now_ns - looked_ns_ >= kLookEveryNs && look(now_ns);
  }
  // Decides about a tick taken `late_ns` after its deadline, or about clocks that have changed. CPU
  // use is then counted from `now_ns` on.
  Verdict judge(std::uint64_t now_ns, std::uint64_t late_ns);

 private:
  void note_now(std::uint64_t now_ns);
  // Both clocks, read one right after the other: if they are not, they seem to have moved apart.
  void note_now(std::uint64_t now_ns, std::int64_t now_unix_ns);
  void count(std::uint64_t now_ns);
  bool look(std::uint64_t now_ns);

  Source source_;
  std::uint64_t note_every_ns_;
  std::uint64_t noted_ns_ = 0;
  std::int64_t noted_unix_ns_ = 0;
  Use noted_;
  std::uint64_t counted_ns_ = 0;
  std::uint64_t process_cpu_ns_ = 0;  // at counted_ns_
  std::uint64_t looked_ns_ = 0;
  std::int64_t clocks_apart_ns_ = 0;  // the wall clock less CLOCK_MONOTONIC, at the last look
  std::uint64_t process_start_ = 0;   // clock ticks since boot
};

}  // namespace kymo
