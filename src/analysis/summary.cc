#include "analysis/summary.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "analysis/joined_parts.h"
#include "analysis/row_pieces.h"
#include "base/rate.h"

namespace kymo::analysis {
namespace {

// A piece of time between two rows.
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

// A window that ends at a row. Windows slide: one ends at each row, and begins at the last row that is at
// least the length before it.
struct SlidingWindow {
  std::size_t end_row = 0;  // in the block
  std::size_t begin = 0;    // index of the value at its beginning, among those that a column keeps
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  // `begin_ns`: no row is far enough before it
};

// Slides windows of at least `length` over the rows, across blocks. Rows that are nearer to each other than a
// 128th of it count as one, so that no column keeps many values, however dense the rows are.
class WindowSlider {
 public:
  explicit WindowSlider(std::uint64_t length) : length_(length), step_(length / 128) {}

  const std::vector<SlidingWindow>& slide(std::span<const std::uint64_t> times) {
    forget();
    windows_.clear();
    for (std::size_t row = 0; row < times.size(); ++row) {
      if (!kept_.empty() && times[row] - kept_.back() < step_) continue;
      kept_.push_back(times[row]);
      windows_.push_back(ending(row, times[row]));
    }
    gone_ = begin_;
    return windows_;
  }

  // The window that ends at the last row of all.
  SlidingWindow last(std::uint64_t last_ns) {
    forget();
    return ending(0, last_ns);
  }
  // How many of the values that a column keeps no window needs any more.
  [[nodiscard]] std::size_t gone() const { return gone_; }

 private:
  void forget() {
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(gone_));
    begin_ -= gone_;
    gone_ = 0;
  }

  SlidingWindow ending(std::size_t row, std::uint64_t end_ns) {
    while (begin_ + 1 < kept_.size() && end_ns - kept_[begin_ + 1] >= length_) ++begin_;
    const bool far_enough = end_ns - kept_[begin_] >= length_;
    return {row, begin_, far_enough ? kept_[begin_] : end_ns, end_ns};
  }

  std::uint64_t length_;
  std::uint64_t step_;
  std::vector<std::uint64_t> kept_;  // times
  std::size_t begin_ = 0;            // in `kept_`
  std::size_t gone_ = 0;
  std::vector<SlidingWindow> windows_;
};

// Sums up one column, block by block.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(ColumnInfo info) { summary_.info = std::move(info); }

  void add(std::span<const std::uint64_t> values, const ColumnSum& sum,
           const std::vector<Window>& windows, const std::vector<SlidingWindow>& sliding,
           std::size_t gone) {
    if (sum_.values == 0) window_value_ = values.front();
    sum_.add(sum);
    for (const Window& window : windows) {
      close(window, values[window.end_row]);
    }
    for (const SlidingWindow& window : sliding) {
      kept_.push_back(values[window.end_row]);
      look_at(window, kept_.back());
    }
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  // `last`: its `begin` counts from the values that add() was told to be gone.
  ColumnSummary finish(std::uint64_t duration_ns, const SlidingWindow& last) {
    look_at(last, sum_.last);
    if (open_) {
      // What comes after the last window belongs to it.
      if (sum_.last > window_value_) open_growth_ += sum_.last - window_value_;
      profile_.add(open_->begin_ns, last.end_ns, open_growth_);
    }
    summary_.first = sum_.first;
    summary_.last = sum_.last;
    summary_.min = sum_.min;
    summary_.max = sum_.max;
    summary_.falls = sum_.falls;
    if (!summary_.info.described) {
      summary_.info.kind = summary_.falls == 0 ? Kind::counter : Kind::gauge;
    }
    if (sum_.values != 0) {
      summary_.mean = sum_.total() / static_cast<double>(sum_.values);
    }
    if (summary_.last > summary_.first) {
      summary_.delta = summary_.last - summary_.first;
    }
    summary_.rate = rate_per_second(static_cast<double>(summary_.delta), duration_ns);
    // A recording that is shorter than one window has only its mean rate.
    if (!slid_) summary_.highest_rate = summary_.rate;
    summary_.rates = profile_.percentiles();
    summary_.busiest = profile_.busiest();
    return std::move(summary_);
  }

 private:
  void close(const Window& window, std::uint64_t value) {
    if (open_) profile_.add(open_->begin_ns, open_->end_ns, open_growth_);
    open_.reset();
    if (value >= window_value_) {
      open_ = window;
      open_growth_ = value - window_value_;
    }
    window_value_ = value;
  }

  void look_at(const SlidingWindow& window, std::uint64_t value) {
    if (window.begin_ns == window.end_ns) return;
    slid_ = true;
    const std::uint64_t before = kept_[window.begin];
    if (value <= before) return;
    const double rate =
        rate_per_second(static_cast<double>(value - before), window.end_ns - window.begin_ns);
    if (rate <= summary_.highest_rate) return;
    summary_.highest_rate = rate;
    summary_.highest_rate_at_ns = window.begin_ns;
  }

  ColumnSummary summary_;
  ColumnSum sum_;
  std::uint64_t window_value_ = 0;
  std::optional<Window> open_;  // the last window, which the profile does not have yet
  std::uint64_t open_growth_ = 0;
  std::vector<std::uint64_t> kept_;  // values at the rows that WindowSlider keeps
  bool slid_ = false;
  RateProfile profile_;
};

// Notes what contradicts the metadata and can only be seen from the rows.
void compare_with_metadata(Summary& summary) {
  std::vector<std::string>& notes = summary.recording.notes;
  for (const ColumnSummary& column : summary.columns) {
    if (column.info.described && column.info.kind == Kind::counter && column.falls != 0) {
      notes.push_back("the counter " + in_quotes(column.info.name, 64) + " goes back " +
                      std::to_string(column.falls) + " times: its rates leave those steps out");
    }
  }
  const auto& metadata = summary.recording.metadata;
  if (metadata) {
    for (const CallbackError& error : metadata->callback_errors) {
      for (ColumnSummary& column : summary.columns) {
        if (error.no_value && column.info.metric == error.metric) column.no_value = true;
      }
    }
  }
  if (metadata && metadata->stats && metadata->state == "ended" &&
      metadata->stats->rows_written != summary.rows) {
    notes.push_back("the metadata count " + std::to_string(metadata->stats->rows_written) +
                    " rows, the file holds " + std::to_string(summary.rows));
  }
}

Error rewritten(const std::string& path) {
  return Error{Code::aborted,
               "read " + path +
                   ": another program rewrote it while it was read; try again when that program "
                   "is done"};
}

// Sums up a recording, piece by piece in the order of its rows.
class SummaryBuilder {
 public:
  explicit SummaryBuilder(Recording recording) {
    summary_.recording = std::move(recording);
    const auto& metadata = summary_.recording.metadata;
    summary_.rate_window_ns = std::max(kRateWindowNs, metadata ? metadata->interval_ns : 0);
    cutter_ = WindowCutter(summary_.rate_window_ns);
    slider_ = WindowSlider(summary_.rate_window_ns);
    for (const ColumnInfo& info : summary_.recording.columns) columns_.emplace_back(info);
  }

  void add(const RowPiece& piece) {
    const RowBlock& rows = piece.rows;
    if (summary_.rows == 0) summary_.first_ns = rows.times().front();
    summary_.last_ns = rows.times().back();
    summary_.rows += rows.rows();
    const std::vector<Window>& windows = cutter_.cut(rows.times());
    const std::vector<SlidingWindow>& sliding = slider_.slide(rows.times());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].add(rows.column(i + 1), piece.sums[i + 1], windows, sliding, slider_.gone());
    }
  }

  // The time of the newest row.
  [[nodiscard]] std::uint64_t last_ns() const { return summary_.last_ns; }

  Summary finish(const TsvReader& reader) {
    if (const Metadata* embedded = reader.embedded_metadata(); embedded != nullptr) {
      summary_.recording.metadata = *embedded;  // now with the statistics from the end of the file
      summary_.recording.finish = finish_of(*embedded);
      for (std::string& note : reader.embedded_notes()) {
        summary_.recording.notes.push_back(std::move(note));
      }
    }
    return finish(reader.left_out());
  }

  Summary finish(LeftOut left_out) {
    SlidingWindow last;
    if (summary_.rows != 0) last = slider_.last(summary_.last_ns);
    for (ColumnBuilder& column : columns_) {
      summary_.columns.push_back(column.finish(summary_.duration_ns(), last));
    }
    summary_.left_out = std::move(left_out);
    compare_with_metadata(summary_);
    return std::move(summary_);
  }

 private:
  Summary summary_;
  WindowCutter cutter_{kRateWindowNs};
  WindowSlider slider_{kRateWindowNs};
  std::vector<ColumnBuilder> columns_;
};

}  // namespace

Result<Summary> summarize(const std::string& path, unsigned threads) {
  auto recording = open_recording(path);
  if (!recording) {
    return recording.error();
  }
  auto reader = TsvReader::open(path);
  if (!reader) {
    return reader.error();
  }
  if (reader->columns().size() != recording->columns.size()) return rewritten(path);
  SummaryBuilder builder(std::move(recording).value());
  const Result<void> taken =
      take_rows(*reader, threads, [&](const RowPiece& piece) { builder.add(piece); });
  if (!taken) return taken.error();
  return builder.finish(*reader);
}

Result<Summary> summarize(const std::vector<std::string>& parts, unsigned threads) {
  if (parts.empty()) return Error{Code::invalid_argument, "read a recording: no file is named"};
  if (parts.size() == 1) return summarize(parts.front(), threads);
  auto recording = open_parts(parts);
  if (!recording) return recording.error();
  const std::size_t columns = recording->columns.size();
  SummaryBuilder builder(std::move(recording).value());
  LeftOut left_out;
  for (const std::string& path : parts) {
    auto reader = TsvReader::open(path);
    if (!reader) return reader.error();
    if (reader->columns().size() != columns) return rewritten(path);
    bool in_order = true;
    const Result<void> taken = take_rows(*reader, threads, [&](const RowPiece& piece) {
      in_order = in_order && piece.rows.times().front() >= builder.last_ns();
      if (in_order) builder.add(piece);
    });
    if (!taken) return taken.error();
    if (!in_order) {
      return Error{Code::data_loss, "read " + path +
                                        " as a part: its rows begin before those of the part "
                                        "before end; read it alone"};
    }
    left_out.add_all(reader->left_out(), path.substr(path.rfind('/') + 1));
  }
  return builder.finish(std::move(left_out));
}

}  // namespace kymo::analysis
