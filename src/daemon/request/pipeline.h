#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// One step of a request: its name, a function on the request's context, and the category under
// which its time is summed.
template <class Context>
struct Step {
  ScopeName name;
  Result<void> (*run)(Context& context);
  ScopeName category = "request";
};

// Runs a step, unless context.may_begin() refuses it. An exception (such as out of memory) becomes
// an error of the step, so that the request ends like any other request that fails.
template <class Context>
Result<void> run_step(const Step<Context>& step, Context& context) {
  if constexpr (requires { context.may_begin(step.name.text()); }) {
    if (Result<void> may = context.may_begin(step.name.text()); !may) return may;
  }
  try {
    return step.run(context);
  } catch (const std::exception& error) {
    return Error{Code::internal, std::string(step.name.text()) + ": " + error.what()};
  }
}

// These steps, and then those.
template <class Context, std::size_t N, std::size_t M>
constexpr std::array<Step<Context>, N + M> joined(const std::array<Step<Context>, N>& these,
                                                  const std::array<Step<Context>, M>& those) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>,
                                                 std::index_sequence<J...>) {
    return std::array<Step<Context>, N + M>{these[I]..., those[J]...};
  }
  (std::make_index_sequence<N>(), std::make_index_sequence<M>());
}

// Runs the steps in order until one fails. Each step becomes a scope of the request's timing tree;
// the scope of a failed step has its error.
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
