#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rate.h"

namespace kymo::report {

// The shortest window over which a rate is shown. Rows that are nearer to each other than half their interval were taken
// late.
constexpr std::uint64_t shortest_window_ns(std::uint64_t interval_ns) {
  return interval_ns / 2;
}

// Thins one column for a picture. For each span of rows it keeps the lowest and the highest value,
// so that no spike is lost. With `rates`, these are rates per second. Every page shows what this class keeps.
//
// A rate is over at least the time `window_ns`, because over a shorter one it shows when rows were taken, and not what
// the program did. Windows slide: one ends at each row.
//
// Threads: one.
// Cost:    a few operations for each row; memory for the rows of a window.
class Thinning {
 public:
  struct Extremes {
    double low = 0;
    double high = 0;
  };

  explicit Thinning(bool rates, std::uint64_t window_ns = 0)
      : rates_(rates), window_ns_(window_ns) {}

  // Times must not fall.
  void add(std::uint64_t time_ns, std::uint64_t value) {
    last_ = value;
    if (!rates_) return keep(static_cast<double>(value));
    while (begin_ + 1 < rows_.size() && time_ns - rows_[begin_ + 1].time_ns >= window_ns_) ++begin_;
    if (begin_ < rows_.size()) {
      const Row& begin = rows_[begin_];
      const std::uint64_t passed = time_ns - begin.time_ns;
      if (passed != 0 && passed >= window_ns_) {
        keep(rate_per_second(growth_between(begin.value, value), passed));
      }
    }
    forget();
    rows_.push_back({time_ns, value});
  }
  // The same for many rows, faster.
  void add(std::span<const std::uint64_t> times, std::span<const std::uint64_t> values);

  // Ends the span. Returns nothing if it has no row, or only rows at which no window can end yet, such as the very first
  // one. The windows of the next span may begin in this one.
  std::optional<Extremes> end_span();

  // The value of the last row.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  struct Row {
    std::uint64_t time_ns = 0;
    std::uint64_t value = 0;
  };

  // Rows that no window needs any more.
  void forget() {
    constexpr std::size_t kMany = 64;
    if (begin_ < kMany) return;
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }

  void keep(double shown) {
    extremes_.low = any_ && extremes_.low < shown ? extremes_.low : shown;
    extremes_.high = any_ && extremes_.high > shown ? extremes_.high : shown;
    any_ = true;
  }

  bool rates_;
  std::uint64_t window_ns_;
  bool any_ = false;       // `extremes_` has values
  std::vector<Row> rows_;  // of counters, from a window's beginning on
  std::size_t begin_ = 0;  // of the last window, in `rows_`
  std::uint64_t last_ = 0;
  Extremes extremes_;
};

}  // namespace kymo::report
