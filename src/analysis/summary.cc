#include "analysis/summary.h"

#include <algorithm>
#include <span>
#include <utility>

namespace kymo::analysis {
namespace {

constexpr double kNsPerSecond = 1e9;

// A piece of the time axis that begins at one row and ends at another.
struct Window {
  std::size_t end_row = 0;  // in the block
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// Cuts the rows into windows of at least `length`, across blocks.
class WindowCutter {
 public:
  explicit WindowCutter(std::uint64_t length) : length_(length) {}

  const std::vector<Window>& cut(std::span<const std::uint64_t> times) {
    windows_.clear();
    for (std::size_t row = 0; row < times.size(); ++row) {
      if (!begun_) {
        begun_ = true;
        begin_ns_ = times[row];
      } else if (times[row] - begin_ns_ >= length_) {
        windows_.push_back({row, begin_ns_, times[row]});
        begin_ns_ = times[row];
      }
    }
    return windows_;
  }

 private:
  std::uint64_t length_;
  std::uint64_t begin_ns_ = 0;
  bool begun_ = false;
  std::vector<Window> windows_;
};

// Sums up one column, block by block.
class ColumnSum {
 public:
  explicit ColumnSum(ColumnInfo info) { summary_.info = std::move(info); }

  void add(std::span<const std::uint64_t> values, const std::vector<Window>& windows) {
    if (rows_ == 0) {
      summary_.first = summary_.min = summary_.max = summary_.last = window_value_ = values[0];
    }
    std::uint64_t previous = summary_.last;
    double sum = 0;
    for (const std::uint64_t value : values) {
      summary_.min = std::min(summary_.min, value);
      summary_.max = std::max(summary_.max, value);
      summary_.falls += value < previous ? 1 : 0;
      sum += static_cast<double>(value);
      previous = value;
    }
    sum_ += sum;
    rows_ += values.size();
    summary_.last = values.back();
    for (const Window& window : windows) {
      close(window, values[window.end_row]);
    }
  }

  ColumnSummary finish(std::uint64_t duration_ns) {
    if (!summary_.info.described) {
      summary_.info.kind = summary_.falls == 0 ? Kind::counter : Kind::gauge;
    }
    if (rows_ != 0) {
      summary_.mean = sum_ / static_cast<double>(rows_);
    }
    if (summary_.last > summary_.first) {
      summary_.delta = summary_.last - summary_.first;
    }
    if (duration_ns != 0) {
      summary_.rate =
          static_cast<double>(summary_.delta) * kNsPerSecond / static_cast<double>(duration_ns);
    }
    // A recording shorter than one window has its mean alone.
    if (!window_closed_) {
      summary_.highest_rate = summary_.rate;
    }
    return std::move(summary_);
  }

 private:
  void close(const Window& window, std::uint64_t value) {
    if (value > window_value_) {
      const double rate = static_cast<double>(value - window_value_) * kNsPerSecond /
                          static_cast<double>(window.end_ns - window.begin_ns);
      if (rate > summary_.highest_rate) {
        summary_.highest_rate = rate;
        summary_.highest_rate_at_ns = window.begin_ns;
      }
    }
    window_value_ = value;
    window_closed_ = true;
  }

  ColumnSummary summary_;
  std::uint64_t rows_ = 0;
  double sum_ = 0;
  std::uint64_t window_value_ = 0;
  bool window_closed_ = false;
};

// What only the rows can tell about the metadata.
void compare_with_metadata(Summary& summary) {
  std::vector<std::string>& notes = summary.recording.notes;
  for (const ColumnSummary& column : summary.columns) {
    if (column.info.described && column.info.kind == Kind::counter && column.falls != 0) {
      notes.push_back("the counter " + in_quotes(column.info.name, 64) + " goes back " +
                      std::to_string(column.falls) + " times: its rates leave those steps out");
    }
  }
  const auto& metadata = summary.recording.metadata;
  if (metadata && metadata->stats && metadata->state == "ended" &&
      metadata->stats->rows_written != summary.rows) {
    notes.push_back("the metadata counts " + std::to_string(metadata->stats->rows_written) +
                    " rows, the file holds " + std::to_string(summary.rows));
  }
}

}  // namespace

Result<Summary> summarize(const std::string& path) {
  auto recording = open_recording(path);
  if (!recording) {
    return recording.error();
  }
  auto reader = TsvReader::open(path);
  if (!reader) {
    return reader.error();
  }
  Summary summary;
  summary.recording = std::move(recording).value();
  const auto& metadata = summary.recording.metadata;
  summary.rate_window_ns = std::max(kRateWindowNs, metadata ? metadata->interval_ns : 0);
  std::vector<ColumnSum> sums;
  for (const ColumnInfo& info : summary.recording.columns) {
    sums.emplace_back(info);
  }
  WindowCutter cutter(summary.rate_window_ns);
  RowBlock block = reader->make_block();
  for (;;) {
    auto more = reader->next(block);
    if (!more) {
      return more.error();
    }
    if (!*more) {
      break;
    }
    summary.first_ns = summary.rows == 0 ? block.times().front() : summary.first_ns;
    summary.last_ns = block.times().back();
    summary.rows += block.rows();
    const std::vector<Window>& windows = cutter.cut(block.times());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].add(block.column(i + 1), windows);
    }
  }
  for (ColumnSum& sum : sums) {
    summary.columns.push_back(sum.finish(summary.duration_ns()));
  }
  summary.left_out = reader->left_out();
  if (const Metadata* embedded = reader->embedded_metadata(); embedded != nullptr) {
    summary.recording.metadata = *embedded;  // with the statistics, which stand at its end
    for (std::string& note : reader->embedded_notes()) {
      summary.recording.notes.push_back(std::move(note));
    }
  }
  compare_with_metadata(summary);
  return summary;
}

}  // namespace kymo::analysis
