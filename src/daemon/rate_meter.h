#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace kymo::daemon {

// How fast something grows, over about the last second: steady enough to read, and 0 within a
// second and a half of a standstill.
//
// Threads: one at a time. Cost: fixed memory; no look at a clock of its own.
class RateMeter {
 public:
  // The total at an instant of a monotonic clock.
  void note(std::uint64_t now_ns, std::uint64_t total) {
    if (count_ > 0 && now_ns < at(count_ - 1).at_ns + kApartNs) return;
    points_[count_++ % kPoints] = {now_ns, total};
  }

  // Per second, up to now; 0 where too little is known.
  [[nodiscard]] std::uint64_t per_second(std::uint64_t now_ns, std::uint64_t total) const {
    if (count_ == 0) return 0;
    Point from = at(count_ - 1);
    for (std::size_t i = count_ - std::min(count_, kPoints); i < count_; ++i) {
      if (at(i).at_ns + kWindowNs >= now_ns) {
        from = at(i);
        break;
      }
    }
    const std::uint64_t ns = now_ns > from.at_ns ? now_ns - from.at_ns : 0;
    if (ns < kLeastNs || total <= from.total) return 0;
    return static_cast<std::uint64_t>(static_cast<double>(total - from.total) * 1e9 /
                                      static_cast<double>(ns));
  }

 private:
  struct Point {
    std::uint64_t at_ns = 0;
    std::uint64_t total = 0;
  };
  static constexpr std::size_t kPoints = 16;
  static constexpr std::uint64_t kApartNs = 100'000'000;
  static constexpr std::uint64_t kWindowNs = 1'100'000'000;
  static constexpr std::uint64_t kLeastNs = 1'000'000;

  [[nodiscard]] const Point& at(std::size_t index) const { return points_[index % kPoints]; }

  std::array<Point, kPoints> points_{};
  std::size_t count_ = 0;  // ever noted
};

}  // namespace kymo::daemon
