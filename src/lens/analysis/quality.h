#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lens/analysis/summary.h"

namespace kymo::analysis {

// How many of the due ticks left a row.
struct Capture {
  std::uint64_t ticks_due = 0;
  std::uint64_t rows = 0;
  std::uint64_t gone = 0;  // rows that the metadata count, and that are not in the file
  std::array<std::uint64_t, 4> missed{};  // indexed by MissCause
  bool exact = false;    // true: the recorder's totals; false: counted from the rows and the gaps
  bool at_most = false;  // its recorder could not finish it, so perhaps more was missed

  [[nodiscard]] double share() const {
    return ticks_due == 0 ? 1.0 : static_cast<double>(rows) / static_cast<double>(ticks_due);
  }
};

// Returns nothing if neither the metadata nor a list of gaps says how many ticks were due.
std::optional<Capture> capture_of(const Summary& summary);

// If a large share of the ticks left no row: which share did. Empty otherwise, and if it is unknown.
std::string large_miss(const Summary& summary);

// Why a recording does not hold all of what happened: it was cut, lost rows, or a callback of one of its
// metrics failed. Empty if nothing is known to be missing. `metrics`: only of these callbacks; empty: of all.
std::vector<std::string> what_is_missing(const Summary& summary,
                                         const std::vector<std::string>& metrics);

// A judgement on the quality of a recording, with advice.
struct Verdict {
  enum class Level : std::uint8_t { good, warning, bad };
  Level level = Level::good;
  std::string text;
};

// Returns at least one verdict. If nothing is wrong, it is a single `good`.
std::vector<Verdict> judge(const Summary& summary);

const char* to_string(Verdict::Level level);

}  // namespace kymo::analysis
