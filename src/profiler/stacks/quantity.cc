#include "profiler/stacks/quantity.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kymo::stacks {
namespace {

// In the order of Quantity. If a file has more than one, and does not say which is shown, it is the
// first one here.
constexpr std::array<QuantityFacts, 6> kQuantities{{
    {"cpu", "ns", "CPU time", "samples", false, "samples", "cpu", "nanoseconds"},
    {"wait", "ns", "waiting", "waits", true, "waits", "wait", "nanoseconds"},
    {"heap", "bytes", "memory in use", "objects", false, "inuse_objects", "inuse_space", "bytes"},
    {"alloc", "bytes", "allocated memory", "objects", false, "alloc_objects", "alloc_space",
     "bytes"},
    {"goroutine", "count", "goroutines", "goroutines", true, "goroutine", "goroutine", "count"},
    {"delay", "ns", "waiting for others", "contentions", true, "contentions", "delay",
     "nanoseconds"},
}};

template <typename Matches>
std::optional<Quantity> first_that(Matches matches) {
  const auto found = std::find_if(kQuantities.begin(), kQuantities.end(), matches);
  if (found == kQuantities.end()) return std::nullopt;
  return static_cast<Quantity>(found - kQuantities.begin());
}

}  // namespace

const QuantityFacts& facts_of(Quantity quantity) {
  return kQuantities.at(static_cast<std::size_t>(quantity));
}

std::optional<Quantity> quantity_named(std::string_view name) {
  return first_that([&](const QuantityFacts& facts) { return name == facts.name; });
}

std::vector<std::string> quantity_names() {
  std::vector<std::string> names;
  for (const QuantityFacts& facts : kQuantities) names.emplace_back(facts.name);
  return names;
}

std::optional<Quantity> quantity_of_pprof(std::string_view value, std::string_view unit) {
  return first_that([&](const QuantityFacts& facts) {
    return value == facts.pprof_value && unit == facts.pprof_unit;
  });
}

}  // namespace kymo::stacks
