#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/event.h"

namespace kymo::probe {

// Reads what is slow to read, such as files of /proc, on a thread of its own and keeps the newest
// reading: a sample takes that, with its age, and never waits for a file.
//
// Invariants of the three buffers:
//  1. One is the reading thread's (back_), one the taker's (front_), one lies between them
//     (middle_). Each changes hands by one exchange of the index in middle_, so neither side ever
//     waits for the other, whatever their priorities.
//  2. The exchange releases what was written to the buffer that is given and acquires what the
//     other side did with the one that is got.
//
// Threads:   take() from one thread at a time; all else from the owner's. `read` runs on the
//            poller's thread, and on the owner's in start() and stop(), never on both at once.
// Cost:      take() an exchange. The thread sleeps between readings; one that takes longer than the
//            interval is followed by the next due one, so a slow file costs rate and nothing else.
class Poller {
 public:
  // Fills the words that the constructor was told of.
  using Read = std::function<void(std::uint64_t* words)>;

  struct Reading {
    const std::uint64_t* words = nullptr;  // valid until the next take()
    std::uint64_t at_ns = 0;               // CLOCK_MONOTONIC, the middle of the reading
  };

  Poller(std::size_t words, std::chrono::nanoseconds interval, Read read);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Reads once, then goes on reading every interval.
  void start();
  // Ends that, and reads a last time. Harmless where it does not run.
  void stop();
  // The newest reading; zeros of time 0 before the first.
  [[nodiscard]] Reading take() noexcept;

 private:
  static constexpr std::uint32_t kIsNew = 4;  // in middle_, besides an index

  void run();
  void read_once();

  std::uint64_t interval_ns_;
  Read read_;
  std::array<std::vector<std::uint64_t>, 3> buffers_;  // of each, the time first
  std::uint32_t back_ = 0;
  std::atomic<std::uint32_t> middle_{1};
  std::uint32_t front_ = 2;
  Event stop_;
  std::thread thread_;
};

}  // namespace kymo::probe
