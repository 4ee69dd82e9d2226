#include "lens/analysis/summary.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/rate.h"
#include "lens/analysis/joined_parts.h"
#include "lens/analysis/reading_clocks.h"
#include "lens/analysis/row_pieces.h"

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

// A window that slides. Of each row one ends at it, which begins at the last row that is at least the length before; and
// one begins at it, which ends at the first row that is at least the length after.
struct SlidingWindow {
  std::uint32_t begin =
      0;  // a row of the block; of Slide::carried windows, a value that columns carry
  std::uint32_t end_row = 0;  // in the block
  double per_second = 0;      // what a growth of 1 in it is
};

// The windows that end in a block. Neither their begins nor their ends ever go back.
struct Slide {
  std::vector<SlidingWindow> windows;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> times;  // of each: its begin and end
  double most_per_second = 0;  // of the shortest window there can be
  std::size_t carried = 0;     // so many begin before the block
  std::size_t dropped = 0;     // so many of the values that columns carry are not needed any more
  std::vector<std::uint32_t> kept;  // rows whose values are carried from now on
};

// Slides windows of at least `length` over the rows, across blocks. Rows that are nearer to each other than a
// 128th of it count as one, so that no column carries many values, however dense the rows are.
class WindowSlider {
 public:
  explicit WindowSlider(std::uint64_t length) : length_(length), step_(length / 128) {
    slide_.most_per_second = rate_per_second(1, length);
  }

  const Slide& slide(std::span<const std::uint64_t> times) {
    const std::size_t carried = times_.size();
    slide_.windows.clear();
    slide_.times.clear();
    slide_.carried = 0;
    rows_.clear();
    for (std::size_t row = 0; row < times.size(); ++row) {
      if (!times_.empty() && times[row] - times_.back() < step_) continue;
      times_.push_back(times[row]);
      rows_.push_back(static_cast<std::uint32_t>(row));
      if (!begins_before(times[row])) continue;
      for (std::size_t at = std::min(unused_, begin_); at <= begin_; ++at) {
        const bool here = at >= carried;
        const auto begin = here ? rows_[at - carried] : static_cast<std::uint32_t>(at);
        if (!here) ++slide_.carried;
        slide_.windows.push_back(
            {begin, rows_.back(), rate_per_second(1, times[row] - times_[at])});
        slide_.times.emplace_back(times_[at], times[row]);
      }
      unused_ = begin_ + 1;
    }
    slide_.dropped = std::min(begin_, carried);
    slide_.kept.assign(rows_.begin() + static_cast<std::ptrdiff_t>(begin_ - slide_.dropped),
                       rows_.end());
    times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(begin_));
    unused_ -= begin_;
    begin_ = 0;
    return slide_;
  }

  // The window that ends at the last row of all: which of the carried values it begins at, and when. Nothing if no row is
  // far enough before.
  std::optional<std::pair<std::size_t, std::uint64_t>> last(std::uint64_t last_ns) {
    if (times_.empty() || !begins_before(last_ns)) return std::nullopt;
    return std::pair(begin_, times_[begin_]);
  }

 private:
  // Finds where the window begins that ends then.
  bool begins_before(std::uint64_t end_ns) {
    while (begin_ + 1 < times_.size() && end_ns - times_[begin_ + 1] >= length_) ++begin_;
    return end_ns - times_[begin_] >= length_;
  }

  std::uint64_t length_;
  std::uint64_t step_;
  std::vector<std::uint64_t> times_;  // of the rows that are carried, then of those of the block
  std::vector<std::uint32_t> rows_;   // of the block
  std::size_t begin_ = 0;             // in `times_`
  std::size_t unused_ = 0;            // the first in `times_` at which no window has begun
  Slide slide_;
};

// How the rows of a block are cut into windows, and how much time each row ends.
struct Cut {
  const std::vector<Window>* windows = nullptr;
  const Slide* slide = nullptr;
  std::vector<double> seconds{};  // of each row: since the one before; 0 for the first of all
};

// Cuts the rows of a recording, block by block, by one clock.
class RowCutter {
 public:
  explicit RowCutter(std::uint64_t length) : length_(length), cutter_(length), slider_(length) {}

  void cut(std::span<const std::uint64_t> times) {
    if (!begun_) last_ns_ = times.front();
    begun_ = true;
    cut_.seconds.clear();
    for (const std::uint64_t time : times) {
      cut_.seconds.push_back(static_cast<double>(time - last_ns_) / kNanosPerSecond);
      last_ns_ = time;
    }
    cut_.windows = &cutter_.cut(times);
    cut_.slide = &slider_.slide(times);
  }
  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] const Cut& cut() const { return cut_; }
  // The time of the newest row.
  [[nodiscard]] std::uint64_t last_ns() const { return last_ns_; }
  // WindowSlider::last() of that row.
  std::optional<std::pair<std::size_t, std::uint64_t>> last() { return slider_.last(last_ns_); }

 private:
  std::uint64_t length_;
  WindowCutter cutter_;
  WindowSlider slider_;
  bool begun_ = false;
  std::uint64_t last_ns_ = 0;
  Cut cut_;
};

// Sums up one column, block by block.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(ColumnInfo info) { summary_.info = std::move(info); }

  void add(std::span<const std::uint64_t> values, const ColumnSum& sum, const Cut& cut) {
    const std::vector<Window>& windows = *cut.windows;
    const Slide& slide = *cut.slide;
    if (sum_.values == 0) window_value_ = values.front();
    if (!summary_.info.described || summary_.info.kind == Kind::gauge) weigh(values, cut.seconds);
    grow(values, sum);
    sum_.add(sum);
    for (const Window& window : windows) {
      close(window, values[window.end_row]);
    }
    slid_ = slid_ || !slide.windows.empty();
    const std::span all(slide.windows);
    find_highest(slide, all.first(slide.carried), carried_, values, false);
    find_highest(slide, all.subspan(slide.carried), values, values, sum.falls == 0);
    carried_.erase(carried_.begin(), carried_.begin() + static_cast<std::ptrdiff_t>(slide.dropped));
    for (const std::uint32_t row : slide.kept) carried_.push_back(values[row]);
  }

  // `last`: that of WindowSlider.
  ColumnSummary finish(std::uint64_t duration_ns, std::uint64_t last_ns,
                       const std::optional<std::pair<std::size_t, std::uint64_t>>& last) {
    if (last) {
      slid_ = true;
      note_rate(carried_[last->first], sum_.last, last->second, last_ns);
    }
    if (open_) {
      // What comes after the last window belongs to it.
      if (sum_.last > window_value_) open_growth_ += sum_.last - window_value_;
      open_->end_ns = last_ns;
      profile();
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
      summary_.mean = seconds_ > 0 ? area_ / seconds_ : static_cast<double>(sum_.first);
    }
    summary_.delta = grown_;
    summary_.rate = rate_per_second(static_cast<double>(summary_.delta), duration_ns);
    // A recording that is shorter than one window has only its mean rate.
    if (!slid_) summary_.highest_rate = summary_.rate;
    summary_.rates = profile_.percentiles();
    summary_.busiest = profile_.busiest();
    return std::move(summary_);
  }

 private:
  // A step back is no growth. If there are none, the growth is the difference of two values.
  void grow(std::span<const std::uint64_t> values, const ColumnSum& sum) {
    std::uint64_t before = sum_.values == 0 ? values.front() : sum_.last;
    const bool rises = sum.falls == 0 && values.front() >= before;
    for (const std::uint64_t value : rises ? values.last(1) : values) {
      if (value > before) grown_ += value - before;
      before = value;
    }
  }

  // A gauge has its value for the time until the next row. Rows may be missing just when it is high.
  void weigh(std::span<const std::uint64_t> values, const std::vector<double>& seconds) {
    double before = static_cast<double>(sum_.values == 0 ? values.front() : sum_.last);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      area_ += (before + value) / 2 * seconds[i];
      seconds_ += seconds[i];
      before = value;
    }
  }

  // Adds the open window to the profile. No window of it may be above the highest rate.
  void profile() {
    profile_.add(open_->begin_ns, open_->end_ns, open_growth_);
    note_rate(0, open_growth_, open_->begin_ns, open_->end_ns);
  }

  void close(const Window& window, std::uint64_t value) {
    if (open_) profile();
    open_.reset();
    if (value >= window_value_) {
      open_ = window;
      open_growth_ = value - window_value_;
    }
    window_value_ = value;
  }

  // `begins`: where the windows find the values at their beginning. `rises`: the column never falls in them.
  void find_highest(const Slide& slide, std::span<const SlidingWindow> windows,
                    std::span<const std::uint64_t> begins, std::span<const std::uint64_t> values,
                    bool rises) {
    const auto growth = [&](const SlidingWindow& first, const SlidingWindow& last) {
      return static_cast<double>(
          static_cast<std::int64_t>(values[last.end_row] - begins[first.begin]));
    };
    double highest = summary_.highest_rate;
    const SlidingWindow* found = nullptr;
    while (!windows.empty()) {
      // No window of a few neighbours has a higher rate than all that grew in them, in the shortest time of a window.
      constexpr std::size_t kNeighbours = 4;
      const auto some = windows.first(std::min(windows.size(), kNeighbours));
      windows = windows.subspan(some.size());
      if (rises && growth(some.front(), some.back()) * slide.most_per_second <= highest) continue;
      for (const SlidingWindow& window : some) {
        const double rate = growth(window, window) * window.per_second;
        if (rate <= highest) continue;
        highest = rate;
        found = &window;
      }
    }
    if (found == nullptr) return;
    const auto& [begin_ns, end_ns] =
        slide.times[static_cast<std::size_t>(found - slide.windows.data())];
    note_rate(begins[found->begin], values[found->end_row], begin_ns, end_ns);
  }

  void note_rate(std::uint64_t before, std::uint64_t value, std::uint64_t begin_ns,
                 std::uint64_t end_ns) {
    if (value <= before) return;
    const double rate = rate_per_second(static_cast<double>(value - before), end_ns - begin_ns);
    if (rate <= summary_.highest_rate) return;
    summary_.highest_rate = rate;
    summary_.highest_rate_at_ns = begin_ns;
  }

  ColumnSummary summary_;
  ColumnSum sum_;
  std::uint64_t grown_ = 0;
  std::uint64_t window_value_ = 0;
  std::optional<Window> open_;  // the last window, which the profile does not have yet
  std::uint64_t open_growth_ = 0;
  std::vector<std::uint64_t> carried_;  // values at rows before the block, at which windows begin
  double area_ = 0;  // of a gauge: its values times the seconds for which it had them
  double seconds_ = 0;
  bool slid_ = false;
  RateProfile profile_;
};

}  // namespace

std::string falls_text(const ColumnSummary& column) {
  if (!column.info.described || column.info.kind != Kind::counter || column.falls == 0) return "";
  return "the counter " + in_quotes(column.info.name, 64) + " goes back " +
         (column.falls == 1 ? "once" : std::to_string(column.falls) + " times");
}

namespace {

// Notes what contradicts the metadata and can only be seen from the rows.
void compare_with_metadata(Summary& summary) {
  std::vector<std::string>& notes = summary.recording.notes;
  for (const ColumnSummary& column : summary.columns) {
    const std::string said = falls_text(column);
    if (!said.empty()) notes.push_back(said + ": its rates leave those steps out");
  }
  const auto& metadata = summary.recording.metadata;
  if (metadata) {
    for (const CallbackError& error : metadata->callback_errors) {
      for (ColumnSummary& column : summary.columns) {
        if (error.no_value && column.info.metric == error.metric) column.no_value = true;
      }
      if (error.no_value) {
        notes.push_back(
            in_quotes(error.metric, 64) +
            " never had a value, because its callback has thrown each time: its columns "
            "are 0, which means nothing");
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
  explicit SummaryBuilder(Recording recording) : clocks_(recording.columns) {
    summary_.recording = std::move(recording);
    const auto& metadata = summary_.recording.metadata;
    summary_.rate_window_ns = std::max(kRateWindowNs, metadata ? metadata->interval_ns : 0);
    cutters_.assign(clocks_.count(),
                    RowCutter(std::max(kReadingWindowNs, summary_.rate_window_ns)));
    cutters_.front() = RowCutter(summary_.rate_window_ns);
    for (const ColumnInfo& info : summary_.recording.columns) columns_.emplace_back(info);
  }

  void add(const RowPiece& piece) {
    const RowBlock& rows = piece.rows;
    if (summary_.rows == 0) summary_.first_ns = rows.times().front();
    summary_.rows += rows.rows();
    clocks_.read(rows.times(), [&](std::size_t column) { return rows.column(column + 1); });
    for (std::size_t i = 0; i < cutters_.size(); ++i) cutters_[i].cut(clocks_.times(i));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].add(rows.column(i + 1), piece.sums[i + 1], cutters_[clocks_.of(i)].cut());
    }
  }

  // The time of the newest row.
  [[nodiscard]] std::uint64_t last_ns() const { return cutters_.front().last_ns(); }

  Summary finish(const TsvReader& reader) {
    if (const Metadata* embedded = reader.embedded_metadata(); embedded != nullptr) {
      summary_.recording.metadata = *embedded;  // now with the statistics from the end of the file
      summary_.recording.finish = finish_of(*embedded, summary_.recording.path);
      for (std::string& note : reader.embedded_notes()) {
        summary_.recording.notes.push_back(std::move(note));
      }
    }
    return finish(reader.left_out());
  }

  Summary finish(LeftOut left_out) {
    summary_.last_ns = last_ns();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      RowCutter& cutter = cutters_[clocks_.of(i)];
      summary_.columns.push_back(
          columns_[i].finish(summary_.duration_ns(), cutter.last_ns(), cutter.last()));
      summary_.columns.back().rate_window_ns = cutter.length();
    }
    summary_.left_out = std::move(left_out);
    compare_with_metadata(summary_);
    return std::move(summary_);
  }

 private:
  Summary summary_;
  ReadingClocks clocks_;
  std::vector<RowCutter> cutters_;  // of each clock
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
  const std::vector<std::string> files = files_of(*recording);
  SummaryBuilder builder(std::move(recording).value());
  LeftOut left_out;
  for (const std::string& path : files) {
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
