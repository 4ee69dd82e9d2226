#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <string>

#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// One step of a request: a name, a function on the request's context, and what its time is summed
// under.
template <class Context>
struct Step {
  ScopeName name;
  Result<void> (*run)(Context& context);
  ScopeName category = "request";
};

// Runs a step; what it throws (out of memory, say) is its error, so that the request is concluded
// as any other that fails.
template <class Context>
Result<void> run_step(const Step<Context>& step, Context& context) {
  try {
    return step.run(context);
  } catch (const std::exception& error) {
    return Error{Code::internal, std::string(step.name.text()) + ": " + error.what()};
  }
}

// Runs the steps in order until one fails; each is a scope of the request's tree without its code
// knowing, the failed one with its error.
template <class Context, std::size_t N>
Result<void> run_steps(const std::array<Step<Context>, N>& steps, Context& context) {
  for (const Step<Context>& step : steps) {
    Scope scope(step.name, {.category = step.category});
    Result<void> done = run_step(step, context);
    if (!done) {
      scope.fail(done.error().message);
      return done;
    }
  }
  return {};
}

}  // namespace kymo::daemon
