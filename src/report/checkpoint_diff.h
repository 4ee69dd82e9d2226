#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/metric.h"
#include "report/checkpoint_stats.h"

namespace kymo::report {

// One thing that two checkpoints both have, or one of them.
struct Difference {
  std::string group;  // dump, restore, or whose pages
  std::string name;
  Unit unit = Unit::count;
  bool per_second = false;       // a throughput
  std::optional<double> before;  // none: it is not in the first
  std::optional<double> after;   // none: it is not in the second

  // After less before; what is not there counts as nothing.
  [[nodiscard]] double change() const { return after.value_or(0) - before.value_or(0); }
  // The change as a share of what it was; none where it was nothing, or where one side lacks it.
  [[nodiscard]] std::optional<double> share() const;
};

// What one of the two never went through, which is no difference: "only A was restored".
std::vector<std::string> one_sided_notes(const CheckpointStats& before,
                                         const CheckpointStats& after);

// What differs between two checkpoints: phases and CRIU's times (microseconds), sizes and pages,
// and throughput. Within each unit what changed most comes first, times before sizes; what only one
// of them has comes last, and what is the same is left out. A dump or restore that only one went
// through is left out, too.
std::vector<Difference> compare(const CheckpointStats& before, const CheckpointStats& after);

// For a person: at most `rows` of them, and how many more there are.
std::string text_of(const std::vector<Difference>& differences, const std::string& before,
                    const std::string& after, const std::vector<std::string>& notes,
                    std::size_t rows);
nlohmann::json json_of(const std::vector<Difference>& differences, const std::string& before,
                       const std::string& after, const std::vector<std::string>& notes);

}  // namespace kymo::report
