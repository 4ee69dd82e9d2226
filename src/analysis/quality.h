#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.h"

namespace kymo::analysis {

// How many of the ticks that were due left a row.
struct Capture {
  std::uint64_t ticks_due = 0;
  std::uint64_t rows = 0;
  std::array<std::uint64_t, 4> missed{};  // indexed by MissCause
  bool exact = false;  // the recorder's own totals; else counted from the rows and the list of gaps

  [[nodiscard]] double share() const {
    return ticks_due == 0 ? 1.0 : static_cast<double>(rows) / static_cast<double>(ticks_due);
  }
};

// Nothing where neither metadata nor a list of gaps says what was due.
std::optional<Capture> capture_of(const Summary& summary);

// A judgement on a recording, with what to do about it.
struct Verdict {
  enum class Level : std::uint8_t { good, warning, bad };
  Level level = Level::good;
  std::string text;
};

// At least one; a single `good` where there is nothing to say.
std::vector<Verdict> judge(const Summary& summary);

const char* to_string(Verdict::Level level);

}  // namespace kymo::analysis
