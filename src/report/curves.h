#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/summary.h"

namespace kymo::report {

// Which columns a picture shows. All of one axis have one unit.
struct CurveChoice {
  std::vector<std::size_t> left;  // into Summary::columns, the ones that moved most first
  Unit left_unit = Unit::count;
  std::vector<std::size_t> right;  // may be empty
  Unit right_unit = Unit::count;
};

// Bytes on the left and pages on the right where there are such counters; else the busiest
// counters. The recorder's own come last: they always move. Nothing where nothing moved.
std::optional<CurveChoice> choose_curves(const analysis::Summary& summary);

}  // namespace kymo::report
