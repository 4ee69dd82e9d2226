#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/metric.h"
#include "lens/report/checkpoint_stats.h"

namespace kymo::report {

// A value of two checkpoints that differs, or that only one of them has.
struct Difference {
  std::string group;  // dump, restore, or the process that the pages belong to
  std::string name;
  Unit unit = Unit::count;
  bool per_second = false;       // a throughput
  std::optional<double> before;  // empty if the first checkpoint does not have it
  std::optional<double> after;   // empty if the second checkpoint does not have it

  // `after` minus `before`. A missing value counts as 0.
  [[nodiscard]] double change() const { return after.value_or(0) - before.value_or(0); }
  // The change as a share of `before`. Nothing if `before` is 0 or one of the two is missing.
  [[nodiscard]] std::optional<double> share() const;
};

// Notes on dumps and restores that only one of the two has, and that are therefore not compared:
// "only A was restored".
std::vector<std::string> one_sided_notes(const CheckpointStats& before,
                                         const CheckpointStats& after);

// The differences between two checkpoints: phases and CRIU's times (microseconds), sizes and pages,
// and throughput. Times come before sizes; within each unit, the largest change comes first. Values
// that only one checkpoint has come last. Equal values are left out, and so is a dump or restore
// that only one of them has.
std::vector<Difference> compare(const CheckpointStats& before, const CheckpointStats& after);

// Two checkpoints, A and B, side by side.
struct CheckpointDiff {
  std::string before;              // the name of A, at first its path
  std::string after;               // the name of B
  std::vector<std::string> lines;  // why one dump held its processes longer, in plain words
  std::vector<std::string> notes;  // one_sided_notes()
  std::vector<Difference> differences;
};

// Compares everything. Reads, beside the statistics, the explanations of the two (explanation.h).
CheckpointDiff diff_of(const CheckpointStats& before, const CheckpointStats& after);

// Text for a person: the lines, then at most `rows` differences, and how many more there are.
std::string text_of(const CheckpointDiff& diff, std::size_t rows);
nlohmann::json json_of(const CheckpointDiff& diff);

}  // namespace kymo::report
