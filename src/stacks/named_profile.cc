#include "stacks/named_profile.h"

#include <map>
#include <utility>

namespace kymo::stacks {

Weight NamedProfile::sum() const {
  Weight sum;
  for (const Stack& stack : stacks) {
    sum.samples += stack.weight.samples;
    sum.ns += stack.weight.ns;
  }
  return sum;
}

NamedProfile named(const Profile& profile, Symbols& symbols) {
  NamedProfile result;
  result.waits = profile.waits;
  result.period_ns = profile.period_ns;
  result.duration_ns = profile.duration_ns;
  std::map<std::pair<std::string, std::string>, std::uint32_t> ids;
  for (const auto& [trace, weight] : profile.traces) {
    NamedProfile::Stack stack{trace.process, {}, trace.truncated, weight};
    for (const Frame& frame : trace.frames) {
      const Location& location = symbols.at(frame);
      for (const Line& line : location.lines) {
        const auto [found, added] = ids.try_emplace(
            {line.function, location.module}, static_cast<std::uint32_t>(result.functions.size()));
        if (added) result.functions.push_back({line.function, location.module, location.known});
        stack.functions.push_back(found->second);
      }
    }
    result.stacks.push_back(std::move(stack));
  }
  return result;
}

Result<void> add(NamedProfile& to, const NamedProfile& profile) {
  if (to.waits != profile.waits) {
    return Error{Code::failed_precondition,
                 "one is a profile of CPU time and one of waiting: they cannot be added"};
  }
  if (to.period_ns != profile.period_ns) to.period_ns = 0;
  to.duration_ns += profile.duration_ns;
  const auto offset = static_cast<std::uint32_t>(to.functions.size());
  to.functions.insert(to.functions.end(), profile.functions.begin(), profile.functions.end());
  for (NamedProfile::Stack stack : profile.stacks) {
    for (std::uint32_t& function : stack.functions) function += offset;
    to.stacks.push_back(std::move(stack));
  }
  return {};
}

}  // namespace kymo::stacks
