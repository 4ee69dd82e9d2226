#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/rate_profile.h"
#include "lens/analysis/recording.h"

namespace kymo::analysis {

// The summary of one column. Values are as recorded. Rates are in the column's unit per second.
struct ColumnSummary {
  ColumnInfo info;  // without metadata, a column that never falls is a counter
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  double mean = 0;  // over the time, of a gauge
  // The members from here to `busiest` are for counters. `rate` is the mean over the recording.
  std::uint64_t delta = 0;  // the sum of all steps up
  double rate = 0;
  // Of the windows from each row to the first one that is far enough after it, and of those that end at
  // each row: they slide, so a short peak is in one of them.
  std::uint64_t rate_window_ns = 0;  // the shortest over which its rates are computed
  double highest_rate = 0;
  std::uint64_t highest_rate_at_ns = 0;  // beginning of that window, on the rows' clock
  RatePercentiles rates;                 // over neighbouring windows
  BusyStretch busiest;
  std::uint64_t falls = 0;  // rows that are lower than the row before
  bool no_value = false;    // its callback has never returned one: the 0 in its rows means nothing

  [[nodiscard]] bool idle() const { return min == max; }
};

// "the counter NAME goes back once", or "N times", of a column that is a counter by the metadata. Empty: it never falls.
std::string falls_text(const ColumnSummary& column);

// The summary of a recording.
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

// The minimum length of the windows that rates are computed over. The highest rate between two
// single samples would show the timing of the sampler rather than the program.
inline constexpr std::uint64_t kRateWindowNs = 10'000'000;
// The same of values that were read before their row (base/reading_age.h): the kernel counts the time of ended
// children in steps of 10 ms, and a reading takes a while.
inline constexpr std::uint64_t kReadingWindowNs = 100'000'000;

// Reads a whole recording once, plain TSV on `threads` threads. 0 means one thread for each core
// that this process may use.
//
// Errors: those of open_recording() and TsvReader.
// Cost:   at most 170 KiB for each column (less if the recording is shorter than 40 s), and less
//         than 4 MiB for each thread.
Result<Summary> summarize(const std::string& path, unsigned threads = 0);
// Reads the parts of one recording as a whole (join_parts()).
//
// Errors: also those of open_parts(). data_loss if the rows of a part begin before those of the part
//         before end.
Result<Summary> summarize(const std::vector<std::string>& parts, unsigned threads = 0);

}  // namespace kymo::analysis
