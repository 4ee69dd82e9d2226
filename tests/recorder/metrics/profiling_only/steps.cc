// Compiled with the profiling metric and, with WITHOUT, without any use of it, to compare the two
// programs.
#include <type_traits>

#include "kymo/profiling_only.h"

#ifndef WITHOUT
static_assert(KYMO_PROFILING != 0 || std::is_empty_v<kymo::ProfilingCounter>);
KYMO_PROFILING_COUNTER(profiling_steps);
#endif

bool begin(kymo::Registry& registry) {
#ifndef WITHOUT
  if (auto made = profiling_steps.register_in(registry, "inner_steps", "Steps of the inner loop");
      !made.ok()) {
    return false;
  }
#endif
  return &registry != nullptr;
}

unsigned long walk(unsigned long n) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < n; ++i) {
    sum ^= i * n;
#ifndef WITHOUT
    profiling_steps.add();
#endif
  }
  return sum;
}
