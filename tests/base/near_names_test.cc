#include "base/near_names.h"

#include <gtest/gtest.h>

namespace kymo {
namespace {

const std::vector<std::string> kNames = {"pages_written", "pages_scanned", "dumps", "phase"};

TEST(NearNames, FindsAMisspelling) {
  EXPECT_EQ(near_names("pages_writen", kNames), std::vector<std::string>{"pages_written"});
}

TEST(NearNames, FindsWhatContainsIt) {
  EXPECT_EQ(near_names("written", kNames), std::vector<std::string>{"pages_written"});
}

TEST(NearNames, SuggestsNoNameThatIsVeryDifferent) {
  EXPECT_TRUE(near_names("temperature", kNames).empty());
  EXPECT_EQ(did_you_mean("temperature", kNames), "");
}

TEST(NearNames, SuggestsOneNameOrTwo) {
  EXPECT_EQ(did_you_mean("dump", kNames), "; did you mean dumps?");
  EXPECT_EQ(did_you_mean("pages_", {"pages_a", "pages_b"}), "; did you mean pages_a or pages_b?");
}

}  // namespace
}  // namespace kymo
