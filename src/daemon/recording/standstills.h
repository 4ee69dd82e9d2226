#pragma once

#include <prometheus/collectable.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kymo::daemon {

// How long dumps let their processes stand still: the histogram kymo_stood_still_seconds on /metrics.
// It is no column of recordings, because it would be twenty of them.
//
// Threads: any.
class Standstills : public prometheus::Collectable {
 public:
  // Counts a dump, also one that failed.
  void add(std::uint64_t stood_still_ns);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  // Upper bounds in seconds. p95 can be asked between a millisecond and five minutes, as coarse as the
  // bucket that it lies in: to a factor of 1.7 between 1 and 5 s, of 2.5 below, and of 2 to 5 above.
  static constexpr std::array kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,  0.5,    1.0,   1.5,  2.0,   2.5,  3.0,
                                      5.0,   10.0,   30.0,  60.0, 300.0};

  mutable std::mutex mutex_;
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};  // the last: above all bounds
  double seconds_ = 0;
};

}  // namespace kymo::daemon
