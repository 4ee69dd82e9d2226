#pragma once

#include <cstdint>

namespace kymo {

// Tells a program that stood still from a collector that merely ran late, and finds out how long a
// restored process was away.
//
// The rule, applied where a tick is taken more than kLeastNs late, where the clock went back, and
// where CLOCK_MONOTONIC and the wall clock have parted: the program was frozen when it is another
// process than before (a restore: the kernel's start time of the process has changed), or when the
// collector's thread was neither running nor waiting for a CPU for at least half of the lateness
// (/proc/thread-self/schedstat). A checkpoint that leaves the process running, SIGSTOP, a cgroup
// freezer and a machine that is paused look like that; a busy machine does not, because there the
// thread waits for a CPU.
//
// After a restore CLOCK_MONOTONIC may be another machine's or another boot's. Where it disagrees
// with the wall clock about the time away, the wall clock is believed: `clock_shift_ns` is what
// must be added to the recording's start, on CLOCK_MONOTONIC, so that its own clock goes on. On the
// same machine CRIU restores into a time namespace, in which CLOCK_MONOTONIC stood still meanwhile:
// no tick need be late then, and that the clocks have parted is the only sign.
//
// Threads: the collector's alone. Cost: note() and clocks_parted() a comparison each; 20 us once a
// second at most, and a vDSO call once a millisecond at most.
class Standstill {
 public:
  static constexpr std::uint64_t kLeastNs = 20'000'000;
  // How far the clocks may disagree before the wall clock is believed: it can be slewed.
  static constexpr std::uint64_t kClockSlackNs = 20'000'000;
  static constexpr std::uint64_t kLookEveryNs = 1'000'000;

  struct Verdict {
    bool frozen = false;
    bool restored = false;
    std::int64_t clock_shift_ns = 0;
  };

  explicit Standstill(std::uint64_t interval_ns);

  // The collector is on time at `now_ns`: what it has used so far counts from here.
  void note(std::uint64_t now_ns) {
    if (now_ns - noted_ns_ >= note_every_ns_) [[unlikely]] {
      note_now(now_ns);
    }
  }
  // Whether the wall clock has moved by more than kClockSlackNs against `now_ns` since the last
  // look: a restore, or somebody set it. What it was is for judge() to say.
  [[nodiscard]] bool clocks_parted(std::uint64_t now_ns) {
    return now_ns - looked_ns_ >= kLookEveryNs && look(now_ns);
  }
  // `late_ns` past a deadline, or the clocks are not what they were. Notes anew.
  Verdict judge(std::uint64_t now_ns, std::uint64_t late_ns);

 private:
  struct Use {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;  // for a CPU
    bool known = false;
  };
  static Use read_use();
  static std::uint64_t read_process_start();
  void note_now(std::uint64_t now_ns);
  bool look(std::uint64_t now_ns);

  std::uint64_t note_every_ns_;
  std::uint64_t noted_ns_ = 0;
  std::int64_t noted_unix_ns_ = 0;
  Use noted_;
  std::uint64_t looked_ns_ = 0;
  std::int64_t clocks_apart_ns_ = 0;  // the wall clock less CLOCK_MONOTONIC, at the last look
  std::uint64_t process_start_ = 0;   // clock ticks since boot
};

}  // namespace kymo
