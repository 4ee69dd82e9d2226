#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "kymo/sink.h"
#include "lens/analysis/summary.h"
#include "lens/report/thinning.h"

namespace kymo::report {

// Thins rows for a picture. For each span of time it keeps the last value of each column, and its
// lowest and highest value, or rate for a counter (thinning.h).
//
// Threads: one.
// Cost:    a few operations for each value; memory for the spans that take() has not returned yet.
class Envelope {
 public:
  struct Column {
    std::size_t word = 1;  // index in a row; 0 is the time
    bool counter = true;
  };
  // Spans begin at the multiples of `span_ns`. 0: every row is a span. `interval_ns`: that of the rows.
  Envelope(std::vector<Column> columns, std::uint64_t span_ns, std::uint64_t interval_ns)
      : columns_(std::move(columns)), span_ns_(span_ns), out_(columns_.size()) {
    const std::uint64_t window = rate_window_ns(span_ns, interval_ns);
    for (const Column& column : columns_) open_.emplace_back(column.counter, window);
  }
  // Over how much time a rate is at least: that of a span, and as long as those in a report where spans are longer.
  static std::uint64_t rate_window_ns(std::uint64_t span_ns, std::uint64_t interval_ns) {
    return std::max(std::min(span_ns, analysis::kRateWindowNs), shortest_window_ns(interval_ns));
  }

  void add(const Rows& rows);
  // `word(k)` returns the value of column k of the constructor's `columns`. Times must rise.
  void add(std::uint64_t time_ns, const std::function<std::uint64_t(std::size_t)>& word);

  // Returns the spans that have ended, and forgets them. With `all`, it also returns the open span,
  // and a later call may return this span again, with its further rows: {"time": […], "columns":
  // [{"last": […], "low": […], "high": […]}]}. `time` is the time of a span's last row. The first
  // rows of a counter have no rate: `low` and `high` are null.
  [[nodiscard]] nlohmann::json take(bool all);
  [[nodiscard]] std::size_t spans() const { return times_.size(); }

 private:
  struct Out {
    std::vector<std::uint64_t> last;
    std::vector<double> low;
    std::vector<double> high;
  };
  void close();

  std::vector<Column> columns_;
  std::uint64_t span_ns_;
  std::vector<Thinning> open_;
  std::vector<Out> out_;
  std::vector<std::uint64_t> times_;
  std::uint64_t span_ = 0;  // number of the open span
  std::uint64_t time_ns_ = 0;
  bool holding_ = false;  // the open span has rows
};

}  // namespace kymo::report
