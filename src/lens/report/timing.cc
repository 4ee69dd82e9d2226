#include "lens/report/timing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "lens/report/human.h"
#include "lens/report/table.h"
#include "recorder/timing/flatten.h"
#include "recorder/timing/scope_json.h"

namespace kymo::report {
namespace {

using Align = Table::Align;

// The duration in the given unit of `unit_ns`, rounded to `digits` (3 or 6) decimal places.
std::string fixed(std::uint64_t ns, std::uint64_t unit_ns, int digits, const char* unit) {
  const std::uint64_t parts = digits == 3 ? 1'000 : 1'000'000;
  const std::uint64_t step_ns = unit_ns / parts;
  const std::uint64_t steps = ns / step_ns + (ns % step_ns >= (step_ns + 1) / 2 ? 1 : 0);
  return fmt::format("{}.{:0{}} {}", with_commas(steps / parts), steps % parts, digits, unit);
}

std::string time(std::uint64_t ns, Precision precision) {
  switch (precision) {
    case Precision::automatic:
      break;
    case Precision::ns:
      return fmt::format("{} ns", with_commas(ns));
    case Precision::us:
      return fixed(ns, 1'000, 3, "µs");
    case Precision::ms:
      return fixed(ns, 1'000'000, 3, "ms");
    case Precision::s:
      return fixed(ns, 1'000'000'000, 6, "s");
  }
  return duration(ns);
}

std::string counted(std::string text, bool counts) {
  return counts ? std::move(text) : "(" + text + ")";
}

std::string moved(std::uint64_t n) {
  return n == 0 ? "" : bytes(n);
}

double share(std::uint64_t part, std::uint64_t total) {
  return total == 0 ? 0 : static_cast<double>(part) / static_cast<double>(total);
}

}  // namespace

std::string timing_table(const std::vector<ScopeRecord>& scopes, Precision precision) {
  const FlatTree tree = flatten(scopes);
  Table table({{"duration"}, {"category", Align::left}, {"bytes"}, {"name", Align::left}});
  for (const FlatScope& row : tree.rows) {
    const char* ending = !row.error.empty() ? " (failed)" : row.unfinished ? " (unfinished)" : "";
    table.add({counted(time(row.duration_ns, precision), row.time_counted), printable(row.category),
               row.bytes == 0 ? "" : counted(moved(row.bytes), row.bytes_counted),
               std::string(2 * row.depth, ' ') + printable(row.name) + ending});
  }
  table.add({time(tree.unaccounted_ns, precision), "", "", "unaccounted"});
  if (tree.overlap_ns != 0) {
    table.add({"-" + time(tree.overlap_ns, precision), "", "", "counted twice"});
  }
  table.add({time(tree.total_ns, precision), "", moved(tree.total_bytes), "total"});
  return table.str();
}

std::string category_table(const std::vector<ScopeRecord>& scopes, Precision precision) {
  const FlatTree tree = flatten(scopes);
  Table table({{"duration"}, {"%"}, {"bytes"}, {"category", Align::left}});
  const auto add = [&](std::uint64_t ns, std::uint64_t bytes, const std::string& name) {
    table.add({time(ns, precision), fmt::format("{:.1f}", 100 * share(ns, tree.total_ns)),
               moved(bytes), name});
  };
  for (const CategorySum& sum : sum_by_category(tree)) {
    add(sum.duration_ns, sum.bytes, sum.category.empty() ? "(none)" : printable(sum.category));
  }
  add(tree.unaccounted_ns, 0, "unaccounted");
  if (tree.overlap_ns != 0) {
    table.add({"-" + time(tree.overlap_ns, precision),
               fmt::format("-{:.1f}", 100 * share(tree.overlap_ns, tree.total_ns)), "",
               "counted twice"});
  }
  add(tree.total_ns, tree.total_bytes, "total");
  return table.str();
}

nlohmann::json timing_json(const std::vector<ScopeRecord>& scopes) {
  return scopes.empty() ? nlohmann::json() : std::move(trees_json(scopes).front());
}

}  // namespace kymo::report
