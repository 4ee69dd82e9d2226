#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/event.h"

namespace kymo::probe {

// Reads slow sources, such as files of /proc, on a thread of its own and keeps the newest reading.
// A sample takes that reading with its time, and never waits for a file.
//
// Invariants of the three buffers:
//  1. One belongs to the reading thread (back_), one to the thread that calls take() (front_), and
//     one lies between them (middle_). A buffer changes its owner by one exchange of the index in
//     middle_, so neither side ever waits for the other, whatever their priorities.
//  2. The exchange releases what this side wrote to the buffer that it gives away, and acquires
//     what the other side did with the buffer that it gets.
//
// Threads:   take() from one thread at a time; all other members from the owner's thread. `read`
//            runs on the poller's thread, and on the owner's thread in start() and stop(), never on
//            both at once.
// Cost:      of take(): one exchange. The thread sleeps between readings. If readings are dear, they
//            become less frequent: they take at most a quarter of a CPU (LookPace).
class Poller {
 public:
  // Fills `words`: as many as the constructor was given.
  using Read = std::function<void(std::uint64_t* words)>;

  struct Reading {
    const std::uint64_t* words = nullptr;  // valid until the next take()
    std::uint64_t at_ns = 0;               // CLOCK_MONOTONIC, the middle of the reading
  };

  Poller(std::size_t words, std::chrono::nanoseconds interval, Read read);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Reads once, then goes on reading every interval, or less often.
  void start();
  // Stops the thread, and reads a last time. Does nothing if the thread does not run.
  void stop();
  // The newest reading. Before the first reading: zeros, with time 0.
  [[nodiscard]] Reading take() noexcept;

 private:
  static constexpr std::uint32_t kIsNew = 4;  // a bit in middle_, besides the index

  void run();
  void read_once();

  std::uint64_t interval_ns_;
  Read read_;
  std::array<std::vector<std::uint64_t>, 3> buffers_;  // each begins with the time of its reading
  // Each on a cache line of its own: the reading thread writes back_, the thread that calls take()
  // writes front_, both write middle_.
  alignas(kCacheLine) std::uint32_t back_ = 0;
  alignas(kCacheLine) std::atomic<std::uint32_t> middle_{1};
  alignas(kCacheLine) std::uint32_t front_ = 2;
  alignas(kCacheLine) Event stop_;
  std::thread thread_;
};

}  // namespace kymo::probe
