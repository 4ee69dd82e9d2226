#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/rate.h"

namespace kymo::daemon {

// The rate at which a total grows, averaged over about the last second, so that it is steady enough
// to read. It is 0 at most a second and a half after the total stops growing.
//
// Threads: one at a time.
// Cost:    fixed memory; it does not read a clock.
class RateMeter {
 public:
  // Notes the total at a time of a monotonic clock.
  void note(std::uint64_t now_ns, std::uint64_t total) {
    if (total != newest_.total) newest_ = {now_ns, total};
    if (count_ > 0 && now_ns < at(count_ - 1).at_ns + kApartNs) return;
    points_[count_++ % kPoints] = {now_ns, total};
  }

  // The rate per second, up to now; 0 if too little is known.
  [[nodiscard]] std::uint64_t per_second(std::uint64_t now_ns, std::uint64_t total) const {
    if (count_ == 0 || newest_.at_ns + kWindowNs < now_ns) return 0;
    Point from = at(count_ - 1);
    for (std::size_t i = count_ - std::min(count_, kPoints); i < count_; ++i) {
      if (at(i).at_ns + kWindowNs >= now_ns) {
        from = at(i);
        break;
      }
    }
    const std::uint64_t ns = now_ns > from.at_ns ? now_ns - from.at_ns : 0;
    if (ns < kMinNs || total <= from.total) return 0;
    return static_cast<std::uint64_t>(rate_per_second(static_cast<double>(total - from.total), ns));
  }

 private:
  struct Point {
    std::uint64_t at_ns = 0;
    std::uint64_t total = 0;
  };
  static constexpr std::size_t kPoints = 16;
  static constexpr std::uint64_t kApartNs = 100'000'000;
  static constexpr std::uint64_t kWindowNs = 1'100'000'000;
  static constexpr std::uint64_t kMinNs = 1'000'000;

  [[nodiscard]] const Point& at(std::size_t index) const { return points_[index % kPoints]; }

  std::array<Point, kPoints> points_{};
  Point newest_{};         // when the total grew last
  std::size_t count_ = 0;  // of all points noted so far
};

}  // namespace kymo::daemon
