#define KYMO_PROFILING 1
#include "kymo/profiling_only.h"

#include <gtest/gtest.h>

namespace kymo {
namespace {

TEST(ProfilingCounter, SwitchedOnItCounts) {
  Registry registry;
  ProfilingCounter steps;
  steps.add();  // has no effect, because it is not registered yet
  ASSERT_TRUE(steps.register_in(registry, "inner_steps", "Steps"));
  steps.add(3);
  std::uint64_t value = 0;
  registry.sampler({}).value()->read(&value);
  EXPECT_EQ(value, 3U);
  EXPECT_EQ(steps.register_in(registry, "inner_steps", "Steps").error().code, Code::already_exists);
}

}  // namespace
}  // namespace kymo
