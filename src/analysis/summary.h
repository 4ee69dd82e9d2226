#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/rate_profile.h"
#include "analysis/recording.h"
#include "kymo/result.h"

namespace kymo::analysis {

// What one column did. Values as recorded; rates in the column's unit per second.
struct ColumnSummary {
  ColumnInfo
      info;  // its kind told from the values where the metadata has none: what never fell counts
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  double mean = 0;  // over the rows
  // Of a counter; `rate` is the mean over the whole recording.
  std::uint64_t delta = 0;
  double rate = 0;
  double highest_rate = 0;
  std::uint64_t highest_rate_at_ns = 0;  // begin of that window, on the rows' clock
  RatePercentiles rates;                 // over windows like that one
  BusyStretch busiest;
  std::uint64_t falls = 0;  // rows that are lower than the row above

  [[nodiscard]] bool idle() const { return min == max; }
};

// A recording in numbers.
struct Summary {
  Recording recording;
  std::uint64_t rows = 0;
  std::uint64_t first_ns = 0;  // times of the first and the last row
  std::uint64_t last_ns = 0;
  std::uint64_t rate_window_ns = 0;
  std::vector<ColumnSummary> columns;
  LeftOut left_out;

  [[nodiscard]] std::uint64_t duration_ns() const { return last_ns - first_ns; }
};

// A highest rate is looked for in windows at least this long: between two samples alone it would
// say more about the sampler than about the program.
inline constexpr std::uint64_t kRateWindowNs = 10'000'000;

// Reads a whole recording once, plain TSV on so many threads; 0: one for each core that this
// process may use. Errors: those of open_recording() and TsvReader. Cost: at most
// 170 KiB a column, less of a recording shorter than 40 s, besides the readers', which stay below
// 4 MiB a thread.
Result<Summary> summarize(const std::string& path, unsigned threads = 0);

}  // namespace kymo::analysis
