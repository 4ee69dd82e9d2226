#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/summary.h"

namespace kymo::report {

// A scope of a recording (docs/timing.md), on the clock of its rows.
struct RecordedScope {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::size_t parent = kNoParent;  // the parent's index, which is smaller than the scope's own
  std::string name;                // "wrapper:part" for a part of a wrapper
  std::string category;
  std::string error;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t thread = 0;  // that opened it; 0: unknown
  bool parallel = false;
  bool redundant = false;
  bool unfinished = false;

  [[nodiscard]] std::int64_t end_ns() const { return start_ns + duration_ns; }
};

// The scopes of the recorded request, and those that the program has made. Empty if the metadata
// has none, or no start time to place them on the clock of the rows.
std::vector<RecordedScope> scopes_of(const analysis::Metadata& metadata);

// The scopes that the program has made, as a table: a line for all of one name in the same place.
// Empty: none.
std::string scope_table(const analysis::Metadata& metadata);

}  // namespace kymo::report
