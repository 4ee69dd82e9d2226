#include "report/curves.h"

#include <algorithm>
#include <string_view>

namespace kymo::report {
namespace {

using analysis::ColumnSummary;

constexpr std::size_t kMaxCurves = 4;
constexpr std::string_view kOwnPrefix = "profiler_";

bool own(const ColumnSummary& column) {
  return column.info.name.starts_with(kOwnPrefix);
}

// The counters of this unit (of any unit, if it is empty) that moved, the busiest first.
std::vector<std::size_t> movers(const analysis::Summary& summary, std::optional<Unit> unit,
                                bool own_ones) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < summary.columns.size(); ++i) {
    const ColumnSummary& column = summary.columns[i];
    if (column.info.kind == Kind::counter && column.delta != 0 && own(column) == own_ones &&
        (!unit || column.info.unit == *unit)) {
      found.push_back(i);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&summary](std::size_t a, std::size_t b) {
    return summary.columns[a].delta > summary.columns[b].delta;
  });
  if (!unit && !found.empty()) {
    const Unit busiest = summary.columns[found[0]].info.unit;
    std::erase_if(found, [&](std::size_t i) { return summary.columns[i].info.unit != busiest; });
  }
  found.resize(std::min(found.size(), kMaxCurves));
  return found;
}

}  // namespace

std::optional<CurveChoice> choose_curves(const analysis::Summary& summary) {
  CurveChoice choice;
  const auto bytes = movers(summary, Unit::bytes, false);
  const auto pages = movers(summary, Unit::pages, false);
  if (!bytes.empty()) {
    choice.left = bytes;
    choice.right = pages;
  } else if (!pages.empty()) {
    choice.left = pages;
  } else {
    choice.left = movers(summary, std::nullopt, false);
  }
  if (choice.left.empty()) {
    choice.left = movers(summary, std::nullopt, true);
  }
  if (choice.left.empty()) {
    return std::nullopt;
  }
  choice.left_unit = summary.columns[choice.left[0]].info.unit;
  if (!choice.right.empty()) {
    choice.right_unit = summary.columns[choice.right[0]].info.unit;
  }
  return choice;
}

}  // namespace kymo::report
