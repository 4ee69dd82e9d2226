#include "profiler/stacks/same_functions.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "profiler/stacks/named_profile.h"

namespace kymo::stacks {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

NamedProfile functions_profile(const Names& functions) {
  NamedProfile profile;
  for (const auto& [name, module] : functions) profile.functions.push_back({name, module, true});
  return profile;
}

// Whether the first functions of both profiles count as the same function.
bool are_same(const Names& before, const Names& after) {
  const SameFunctions found = same_functions(functions_profile(before), functions_profile(after));
  return found.of_before.at(0) == found.of_after.at(0);
}

TEST(SameFunctionsTest, NameAndFileNameOfTheModuleAreTheSame) {
  EXPECT_TRUE(are_same({{"run", "/v1/app"}}, {{"run", "/v2/app"}}));
  EXPECT_FALSE(are_same({{"run", "/v1/app"}}, {{"walk", "/v1/app"}}));
}

TEST(SameFunctionsTest, AModuleWithAnotherVersionInItsNameIsTheSame) {
  EXPECT_TRUE(are_same({{"read", "/lib/libx.so.1.2"}}, {{"read", "/lib/libx.so.1.3"}}));
  EXPECT_TRUE(are_same({{"read", "/lib/libx.so.1.2"}, {"read", "/bin/app"}},
                       {{"read", "/lib/libx.so.1.3"}, {"read", "/bin/app"}}));
}

TEST(SameFunctionsTest, FunctionsOfOneNameInTwoModulesAreTwo) {
  const SameFunctions found =
      same_functions(functions_profile({{"main", "/bin/a"}, {"main", "/bin/b"}}),
                     functions_profile({{"main", "/bin/b"}}));
  EXPECT_EQ(found.functions.size(), 2U);
  EXPECT_NE(found.of_before[0], found.of_before[1]);
  EXPECT_EQ(found.of_before[1], found.of_after[0]);
}

TEST(SameFunctionsTest, WhichModuleWasRenamedIsNotGuessed) {
  EXPECT_FALSE(are_same({{"main", "/bin/a"}, {"main", "/bin/b"}}, {{"main", "/bin/c"}}));
}

TEST(SameFunctionsTest, TheModuleIsThatOfTheSecondProfile) {
  const SameFunctions found =
      same_functions(functions_profile({{"run", "/v1/app"}, {"old", "/v1/app"}}),
                     functions_profile({{"run", "/v2/app"}, {"run", "/v2/app"}}));
  ASSERT_EQ(found.functions.size(), 2U);  // a function that is listed twice counts once
  EXPECT_EQ(found.functions[found.of_before[0]].module, "/v2/app");
  EXPECT_EQ(found.functions[found.of_before[1]].module, "/v1/app");
  EXPECT_EQ(found.of_after[0], found.of_after[1]);
}

}  // namespace
}  // namespace kymo::stacks
