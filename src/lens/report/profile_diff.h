#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lens/report/recording_diff.h"
#include "profiler/stacks/comparison.h"

namespace kymo::report {

// Two stack profiles and their comparison.
struct ProfileDiff {
  std::string before;  // paths
  std::string after;
  stacks::Comparison comparison;
};

// Checks whether the own or the total share of a function changed beyond noise and by more than a
// part of the whole profile, so that a build can fail. If one function changed and another one
// could not be tested, the outcome is `changed`.
struct ShareCheck {
  std::vector<const stacks::FunctionChange*> changed;
  std::vector<const stacks::FunctionChange*> undecided;  // not tested, with a larger difference
  ChangeCheck::Outcome outcome = ChangeCheck::Outcome::no_change;
};

// Of what the shares are: "samples", "time", "bytes".
std::string shares_of(const stacks::Comparison& comparison);

// The result refers to the functions of `comparison`.
ShareCheck check_shares(const stacks::Comparison& comparison, double allowed);

// Text for a person: what was compared and how, what changed, at most `rows` functions of each
// kind, and, if `allowed` is given, whether a change is more than that.
std::string text_of(const ProfileDiff& diff, std::size_t rows, std::optional<double> allowed);
// JSON with all functions, those that changed most first.
nlohmann::ordered_json json_of(const ProfileDiff& diff, std::optional<double> allowed);

}  // namespace kymo::report
