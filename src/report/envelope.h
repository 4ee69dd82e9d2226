#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "kymo/sink.h"

namespace kymo::report {

// Rows thinned for a picture: of each span of time the last value of each column, and the lowest
// and highest, so that no spike is lost. Of a counter lowest and highest are of its rate between
// two rows, per second.
//
// Threads: one. Cost: a few operations a value; memory for the spans that were not taken yet.
class Envelope {
 public:
  struct Column {
    std::size_t word = 1;  // of a row; 0 is its time
    bool counter = true;
  };
  // Spans are the multiples of `span_ns`; 0: every row is one of its own.
  Envelope(std::vector<Column> columns, std::uint64_t span_ns)
      : columns_(std::move(columns)),
        span_ns_(span_ns),
        open_(columns_.size()),
        out_(columns_.size()) {}

  void add(const Rows& rows);
  // `word(k)`: of column k of those that were asked for. Times must rise.
  void add(std::uint64_t time_ns, const std::function<std::uint64_t(std::size_t)>& word);

  // The spans that are over, and are forgotten by this; with `all` the last one besides, which may
  // come again with more rows in it: {"time": […], "columns": [{"last": […], "low": […],
  // "high": […]}]}. `time` is that of a span's last row. A counter's very first row has no rate:
  // null.
  [[nodiscard]] nlohmann::json take(bool all);
  [[nodiscard]] std::size_t spans() const { return times_.size(); }

 private:
  struct Open {
    std::uint64_t last = 0;
    double low = 0;
    double high = 0;
    bool any = false;
  };
  struct Out {
    std::vector<std::uint64_t> last;
    std::vector<double> low;
    std::vector<double> high;
  };
  void close();

  std::vector<Column> columns_;
  std::uint64_t span_ns_;
  std::vector<Open> open_;
  std::vector<Out> out_;
  std::vector<std::uint64_t> times_;
  std::uint64_t span_ = 0;  // number of the open one
  std::uint64_t time_ns_ = 0;
  bool begun_ = false;    // a row has come
  bool holding_ = false;  // the open span has rows
};

}  // namespace kymo::report
