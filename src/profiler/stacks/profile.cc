#include "profiler/stacks/profile.h"

namespace kymo::stacks {

Weight Profile::sum() const {
  Weight sum;
  for (const auto& [trace, weight] : traces) {
    sum += weight;
  }
  return sum;
}

}  // namespace kymo::stacks
