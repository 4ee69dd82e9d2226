#include "profiler/kept/bodies.h"

#include <gtest/gtest.h>

#include <string>

namespace kymo::profiles {
namespace {

TEST(BodiesTest, AStackIsReadAgain) {
  const StoredStack stack{"web", true, {1, 127, 128, 70'000, ~std::uint64_t{0}}};
  const std::optional<StoredStack> read = stack_in(body_of(stack));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, "web");
  EXPECT_TRUE(read->truncated);
  EXPECT_EQ(read->functions, stack.functions);
}

TEST(BodiesTest, AFunctionIsReadAgain) {
  const std::string name("operator()\0x", 12);
  const auto read = function_in(body_of(stacks::NamedProfile::Function{name, "/a", false}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, name);
  EXPECT_EQ(read->module, "/a");
  EXPECT_FALSE(read->known);
}

TEST(BodiesTest, WhatIsCutOffIsDamaged) {
  const std::string function = body_of(stacks::NamedProfile::Function{"f", "/a", true});
  for (std::size_t size = 0; size < function.size(); ++size) {
    EXPECT_FALSE(function_in(function.substr(0, size))) << size;
  }
  EXPECT_FALSE(function_in(function + "x"));
  EXPECT_FALSE(stack_in("\x03we"));
  // The bytes of a number without its last byte.
  EXPECT_FALSE(stack_in(std::string("\x00\x00\xff", 3)));
  EXPECT_FALSE(stack_in(std::string(12, '\xff')));
}

// The test values are those of the authors of FNV: http://www.isthe.com/chongo/tech/comp/fnv/
TEST(BodiesTest, TheHashIsFnv1a) {
  EXPECT_EQ(static_cast<std::uint64_t>(hash_of("")), 0xcbf29ce484222325U);
  EXPECT_EQ(static_cast<std::uint64_t>(hash_of("a")), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(static_cast<std::uint64_t>(hash_of("foobar")), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace kymo::profiles
