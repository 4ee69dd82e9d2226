#include "report/timing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "report/human.h"
#include "report/table.h"
#include "timing/flatten.h"

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

nlohmann::json scope_json(const ScopeRecord& scope) {
  nlohmann::json json{
      {"name", scope.name}, {"start_ns", scope.start_ns}, {"duration_ns", scope.duration_ns}};
  if (!scope.category.empty()) {
    json["category"] = scope.category;
  }
  if (scope.bytes != 0) {
    json["bytes"] = scope.bytes;
  }
  if (!scope.error.empty()) {
    json["error"] = scope.error;
  }
  for (const auto& [key, set] :
       {std::pair("parallel", scope.parallel), std::pair("redundant", scope.redundant),
        std::pair("bytes_redundant", scope.bytes_redundant),
        std::pair("unfinished", scope.unfinished)}) {
    if (set) {
      json[key] = true;
    }
  }
  return json;
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

nlohmann::json timing_json(const std::vector<ScopeRecord>& scopes, std::uint64_t left_out) {
  if (scopes.empty()) {
    return {};
  }
  std::vector<nlohmann::json> objects;
  objects.reserve(scopes.size());
  for (const ScopeRecord& scope : scopes) {
    objects.push_back(scope_json(scope));
  }
  // A part comes after its parent, so from the end on, each scope is complete when it is moved.
  for (std::size_t i = scopes.size(); i-- > 1;) {
    nlohmann::json& parts = objects[scopes[i].parent]["components"];
    if (parts.is_null()) {
      parts = nlohmann::json::array();
    }
    parts.insert(parts.begin(), std::move(objects[i]));
  }
  if (left_out != 0) {
    objects.front()["scopes_left_out"] = left_out;
  }
  return std::move(objects.front());
}

}  // namespace kymo::report
