#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/rate.h"

namespace kymo::report {

// Thins one column for a picture. For each span of rows it keeps the lowest and the highest value,
// so that no spike is lost. With `rates`, these are the rates between two rows, per second. Every
// page shows what this class keeps.
//
// Threads: one.
// Cost:    a few operations for each row; fixed memory.
class Thinning {
 public:
  struct Extremes {
    double low = 0;
    double high = 0;
  };

  explicit Thinning(bool rates) : rates_(rates) {}

  // Times must not fall.
  void add(std::uint64_t time_ns, std::uint64_t value) {
    if (!rates_) {
      keep(static_cast<double>(value));
    } else if (begun_ && time_ns > time_ns_) {
      keep(rate_per_second(growth_between(last_, value), time_ns - time_ns_));
    }
    time_ns_ = time_ns;
    last_ = value;
    begun_ = true;
  }
  // The same for many rows, faster.
  void add(std::span<const std::uint64_t> times, std::span<const std::uint64_t> values);

  // Ends the span. Returns nothing if it has no row, or only the very first row, which has no rate.
  // The first rate of the next span counts from the last row of this one.
  std::optional<Extremes> end_span();

  // The value of the last row.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  void keep(double shown) {
    extremes_.low = any_ && extremes_.low < shown ? extremes_.low : shown;
    extremes_.high = any_ && extremes_.high > shown ? extremes_.high : shown;
    any_ = true;
  }

  bool rates_;
  bool begun_ = false;  // there has been a row
  bool any_ = false;    // `extremes_` has values
  std::uint64_t time_ns_ = 0;
  std::uint64_t last_ = 0;
  Extremes extremes_;
};

}  // namespace kymo::report
