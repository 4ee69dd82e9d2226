#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
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
  // The change as a share of what it was; none where it was nothing.
  [[nodiscard]] std::optional<double> share() const;
};

// What differs between two checkpoints: phases and CRIU's times (microseconds), sizes and pages,
// and throughput. Within each unit what changed most comes first, times before sizes; what only one
// of them has comes last, and what is the same is left out.
std::vector<Difference> compare(const CheckpointStats& before, const CheckpointStats& after);

// For a person: at most `rows` of them, and how many more there are.
std::string text_of(const std::vector<Difference>& differences, const std::string& before,
                    const std::string& after, std::size_t rows);
nlohmann::json json_of(const std::vector<Difference>& differences, const std::string& before,
                       const std::string& after);

}  // namespace kymo::report
