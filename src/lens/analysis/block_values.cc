#include "lens/analysis/block_values.h"

#include <algorithm>
#include <span>

#include "base/rate.h"
#include "lens/analysis/reading_clocks.h"
#include "lens/analysis/row_pieces.h"

namespace kymo::analysis {
namespace {

// Consecutive rows that belong to one block.
struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t block = 0;
};

class BlockColumn {
 public:
  explicit BlockColumn(Kind kind) : kind_(kind) {}

  void add(std::span<const std::uint64_t> times, std::span<const std::uint64_t> values,
           const Run& run, std::uint64_t whole_blocks) {
    if (run.block != block_ || !begun_) {
      close(whole_blocks);
      block_ = run.block;
    }
    if (!begun_) {
      begun_ = true;
      first_ns_ = block_begin_ns_ = last_ns_ = times[run.begin];
      value_ = values[run.begin];
    }
    for (std::size_t row = run.begin; row < run.end; ++row) {
      const std::uint64_t value = values[row];
      grown_ += value > value_ ? static_cast<double>(value - value_) : 0;
      blocks_.rises += value > value_ ? 1U : 0U;
      const auto both = static_cast<double>(value) + static_cast<double>(value_);
      area_ += both / 2 * static_cast<double>(times[row] - last_ns_);
      value_ = value;
      last_ns_ = times[row];
    }
    rows_ += run.end - run.begin;
  }

  ColumnBlocks finish(std::uint64_t whole_blocks) {
    close(whole_blocks);
    blocks_.growth = all_grown_;
    if (kind_ == Kind::gauge) {
      blocks_.mean = mean_of(all_area_, last_ns_ - first_ns_);
    } else {
      blocks_.mean = rate_per_second(all_grown_, last_ns_ - first_ns_);
    }
    return std::move(blocks_);
  }

 private:
  // Of a gauge over some time. A single row has no time, only its value.
  [[nodiscard]] double mean_of(double area, std::uint64_t ns) const {
    return ns == 0 ? static_cast<double>(value_) : area / static_cast<double>(ns);
  }

  void close(std::uint64_t whole_blocks) {
    if (rows_ == 0) return;
    if (block_ < whole_blocks) {
      if (kind_ == Kind::gauge) {
        blocks_.values.push_back(mean_of(area_, last_ns_ - block_begin_ns_));
      } else if (last_ns_ > block_begin_ns_) {
        blocks_.values.push_back(rate_per_second(grown_, last_ns_ - block_begin_ns_));
        blocks_.growths.push_back(grown_);
      }
    }
    all_grown_ += grown_;
    all_area_ += area_;
    block_begin_ns_ = last_ns_;
    grown_ = area_ = 0;
    rows_ = 0;
  }

  Kind kind_;
  ColumnBlocks blocks_;
  bool begun_ = false;
  std::uint64_t block_ = 0;
  std::uint64_t rows_ = 0;  // the next three: of the open block
  double grown_ = 0;
  double area_ = 0;       // of a gauge: its values times the nanoseconds for which it had them
  double all_grown_ = 0;  // the next two: of all closed blocks
  double all_area_ = 0;
  std::uint64_t value_ = 0;
  std::uint64_t first_ns_ = 0;
  std::uint64_t block_begin_ns_ = 0;  // the block's growth counts from here: last row before it
  std::uint64_t last_ns_ = 0;
};

std::vector<Run> runs_of(std::span<const std::uint64_t> times, const TimeWindow& window,
                         std::uint64_t block_ns) {
  std::vector<Run> runs;
  const auto begin = std::lower_bound(times.begin(), times.end(), window.begin_ns);
  const auto end = std::upper_bound(begin, times.end(), window.end_ns);
  for (auto at = begin; at != end;) {
    const std::uint64_t block = (*at - window.begin_ns) / block_ns;
    auto stop = at + 1;
    while (stop != end && (*stop - window.begin_ns) / block_ns == block) ++stop;
    runs.push_back({static_cast<std::size_t>(at - times.begin()),
                    static_cast<std::size_t>(stop - times.begin()), block});
    at = stop;
  }
  return runs;
}

}  // namespace

Result<std::vector<ColumnBlocks>> read_blocks(const Summary& summary, const TimeWindow& window,
                                              std::uint64_t block_ns) {
  std::vector<BlockColumn> columns;
  for (const ColumnSummary& column : summary.columns) columns.emplace_back(column.info.kind);
  ReadingClocks clocks(summary.recording.columns);
  const std::uint64_t length = std::max<std::uint64_t>(block_ns, 1);
  const std::uint64_t whole_blocks = window.length_ns() / length;
  const auto add = [&](const RowPiece& piece) {
    const std::vector<Run> runs = runs_of(piece.rows.times(), window, length);
    clocks.read(piece.rows.times(), [&](std::size_t i) { return piece.rows.column(i + 1); });
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (const Run& run : runs) {
        columns[i].add(clocks.times(clocks.of(i)), piece.rows.column(i + 1), run, whole_blocks);
      }
    }
  };
  for (const std::string& path : files_of(summary.recording)) {
    auto reader = TsvReader::open(path);
    if (!reader) return reader.error();
    if (reader->columns().size() != columns.size()) {
      return Error{Code::aborted, "read " + path + ": another program rewrote it meanwhile"};
    }
    if (const Result<void> taken = take_rows(*reader, 0, add); !taken) return taken.error();
  }
  std::vector<ColumnBlocks> blocks;
  for (BlockColumn& column : columns) blocks.push_back(column.finish(whole_blocks));
  return blocks;
}

}  // namespace kymo::analysis
