#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kymo/result.h"

namespace kymo::daemon {

// One step of a request: a name and a function on the request's context.
template <class Context>
struct Step {
  std::string_view name;
  Result<void> (*run)(Context& context);
};

// How long a step took; failed steps too.
struct StepTime {
  std::string name;
  std::uint64_t duration_ns = 0;
};

// Runs the steps in order until one fails, and times each without its code knowing.
template <class Context, std::size_t N>
Result<void> run_steps(const std::array<Step<Context>, N>& steps, Context& context,
                       std::vector<StepTime>* times) {
  for (const Step<Context>& step : steps) {
    const std::uint64_t begin = monotonic_ns();
    Result<void> done = step.run(context);
    times->push_back({std::string(step.name), monotonic_ns() - begin});
    if (!done) return done;
  }
  return {};
}

}  // namespace kymo::daemon
