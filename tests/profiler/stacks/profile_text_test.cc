#include "profiler/stacks/profile_text.h"

#include <gtest/gtest.h>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

TEST(ProfileTextTest, WhatAReaderSaysIsReadAgain) {
  NamedProfile profile;
  profile.quantity = Quantity::delay;
  profile.period_ns = 10;
  profile.duration_ns = 20;
  profile.lost = 3;
  profile.counts_samples = false;
  profile.functions = {{"read", "/lib/\"x\".so", true}, {"[x.so]", "x.so", false}};
  profile.stacks = {{"web", {0, 1, 0}, true, {1, 500}, "", "target"}, {"sh", {}, false, {2, 7}}};
  const Result<NamedProfile> read = profile_in(text_of(profile));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(folded(*read), folded(profile));
  EXPECT_EQ(read->quantity, Quantity::delay);
  EXPECT_EQ(read->period_ns, 10U);
  EXPECT_EQ(read->duration_ns, 20U);
  EXPECT_EQ(read->lost, 3U);
  EXPECT_FALSE(read->counts_samples);
  EXPECT_FALSE(read->functions[1].known);
  EXPECT_EQ(read->stacks[0].role, "target");
}

// An attacker may control the process that writes it. A wrong index of a function would cause a read
// outside of the memory.
TEST(ProfileTextTest, AnInvalidAnswerIsRefusedInOneLine) {
  const std::string head = R"({"profile":["cpu",1,2,3,true],)";
  ASSERT_TRUE(
      profile_in(head + R"("functions":[["f","m",true]],"stacks":[["p","",false,1,2,[0]]]})"));
  for (const char* said :
       {R"("functions":[["f","m",true]],"stacks":[["p","",false,1,2,[1]]]})",
        R"("functions":[["f","m",true]],"stacks":[["p","",false,1,2,[-1]]]})",
        R"("functions":[["f","m",true]],"stacks":[["p","",false,1,2,[4294967296]]]})",
        R"("functions":[["f","m",true]],"stacks":[["p","",false,18446744073709551615,2,[0]]]})",
        R"("functions":[["f","m",true]],"stacks":[["p","",false,1.5,2,[0]]]})",
        R"("functions":[["f","m",true]],"stacks":[["p","",false,1,2,0]]})",
        R"("functions":[["f","m",true]],"stacks":[[7,"",false,1,2,[0]]]})",
        R"("functions":[["f","m"]],"stacks":[]})", R"("functions":{"f":1},"stacks":[]})",
        R"("functions":[]})"}) {
    const Result<NamedProfile> read = profile_in(head + said);
    ASSERT_FALSE(read.ok()) << said;
    EXPECT_EQ(read.error().code, Code::data_loss);
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
  for (const char* said : {"", "[]", "{}", "nonsense", R"({"profile":["heat",1,2,3,true]})",
                           R"({"profile":[],"functions":[],"stacks":[]})"}) {
    EXPECT_FALSE(profile_in(said).ok()) << said;
  }
}

}  // namespace
}  // namespace kymo::stacks
