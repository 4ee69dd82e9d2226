#include "profiler/kept/bodies.h"
#include "targets.h"

namespace kymo::fuzz {

// The bytes are rows of a store of stack profiles.
void bodies(Bytes data) {
  const std::string text = text_of(data);
  if (const auto stack = profiles::stack_in(text)) {
    const auto again = profiles::stack_in(profiles::body_of(*stack));
    require(again && again->process == stack->process && again->functions == stack->functions,
            "a stack that is written is read as it was");
  }
  if (const auto function = profiles::function_in(text)) {
    const auto again = profiles::function_in(profiles::body_of(*function));
    require(again && again->name == function->name && again->module == function->module,
            "a function that is written is read as it was");
  }
}

}  // namespace kymo::fuzz
