#include "profiler/stacks/named_profile.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kymo::stacks {

Weight NamedProfile::sum() const {
  Weight sum;
  for (const Stack& stack : stacks) {
    sum += stack.weight;
  }
  return sum;
}

void NamedProfile::add_phase(const std::string& name) {
  if (std::find(phases.begin(), phases.end(), name) == phases.end()) phases.push_back(name);
}

std::vector<std::string> phases_in(const NamedProfile& profile) {
  std::set<std::string> left;
  for (const NamedProfile::Stack& stack : profile.stacks) {
    if (!stack.phase.empty()) left.insert(stack.phase);
  }
  std::vector<std::string> phases;
  for (const std::string& name : profile.phases) {
    if (left.erase(name) != 0) phases.push_back(name);
  }
  phases.insert(phases.end(), left.begin(), left.end());
  return phases;
}

NamedProfile of_phase(const NamedProfile& profile, const std::string& phase) {
  NamedProfile part = profile;
  std::erase_if(part.stacks,
                [&](const NamedProfile::Stack& stack) { return stack.phase != phase; });
  return part;
}

Result<void> add(NamedProfile& to, const NamedProfile& profile) {
  if (to.quantity != profile.quantity) {
    return Error{Code::failed_precondition,
                 std::string("one is a profile of ") + facts_of(to.quantity).what + " and one of " +
                     facts_of(profile.quantity).what + ": they cannot be added"};
  }
  if (to.period_ns != profile.period_ns) to.period_ns = 0;
  to.duration_ns += profile.duration_ns;
  to.lost += profile.lost;
  to.counts_samples = to.counts_samples && profile.counts_samples;
  for (const std::string& phase : profile.phases) to.add_phase(phase);
  const auto offset = static_cast<std::uint32_t>(to.functions.size());
  to.functions.insert(to.functions.end(), profile.functions.begin(), profile.functions.end());
  for (NamedProfile::Stack stack : profile.stacks) {
    for (std::uint32_t& function : stack.functions) function += offset;
    to.stacks.push_back(std::move(stack));
  }
  return {};
}

}  // namespace kymo::stacks
