#include <map>
#include <utility>

#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"

namespace kymo::stacks {

NamedProfile named(const Profile& profile, Symbols& symbols) {
  NamedProfile result;
  result.quantity = profile.waits ? Quantity::wait : Quantity::cpu;
  result.period_ns = profile.period_ns;
  result.duration_ns = profile.duration_ns;
  result.lost = profile.counts.lost;
  result.phases = profile.phases;
  std::map<std::pair<std::string, std::string>, std::uint32_t> ids;
  for (const auto& [trace, weight] : profile.traces) {
    NamedProfile::Stack stack{trace.process, {},         trace.truncated, weight,
                              trace.phase,   trace.role, trace.service};
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

std::string folded(const Profile& profile, Symbols& symbols) {
  return folded(named(profile, symbols));
}

}  // namespace kymo::stacks
