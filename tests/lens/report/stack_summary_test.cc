#include "lens/report/stack_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kymo::report {
namespace {

using stacks::NamedProfile;

// A profile in which each function is the innermost one of some samples.
class StackSummaryTest : public ::testing::Test {
 protected:
  StackSummaryTest() {
    profile_.period_ns = 10'000'000;
    profile_.phases = {"memory", "freeze", "save"};
    add("freeze", "criu", "ptrace", 1);
    add("memory", "criu", "copy_page", 60);
    add("memory", "criu", "splice", 30);
    add("memory", "criu", "a", 6);
    add("memory", "criu", "b\x1b[2J", 4);
    add("memory", "target", "half()", 10);
  }

  void add(const char* phase, const char* role, const char* function, std::uint64_t samples) {
    NamedProfile::Stack stack;
    stack.phase = phase;
    stack.role = role;
    stack.functions = {static_cast<std::uint32_t>(profile_.functions.size())};
    stack.weight = {samples, samples * profile_.period_ns};
    profile_.functions.push_back({function, "/usr/sbin/criu", true});
    profile_.stacks.push_back(stack);
  }

  NamedProfile profile_;
};

TEST_F(StackSummaryTest, SaysTheHottestFunctionsOfEachRoleInTheOrderOfThePhases) {
  StackSummary summary = summary_of(profile_, 3);
  summary.name = "dump";
  EXPECT_EQ(text_of(summary),
            "stacks of the dump, one each 10 ms of CPU time\n"
            "  memory: 110 samples\n"
            "    CRIU, 100: 60 % in copy_page, 30 % in splice, 6 % in a\n"
            "    target, 10: 100 % in half()\n"
            "  freeze: 1 sample\n"
            "    CRIU, 1: 100 % in ptrace\n");
}

TEST_F(StackSummaryTest, WhatWasLostIsSaidAndNamesArePrintable) {
  profile_.lost = 1;
  const std::string text = text_of(summary_of(profile_, 9));
  EXPECT_NE(text.find("; 1 sample lost"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_F(StackSummaryTest, AsJsonItHasTheCountsAndShares) {
  const nlohmann::json json = json_of(summary_of(profile_, 1));
  const nlohmann::json& memory = json["phases"][0];
  EXPECT_EQ(memory["phase"], "memory");
  EXPECT_EQ(memory["samples"], 110);
  EXPECT_EQ(memory["criu"]["samples"], 100);
  ASSERT_EQ(memory["criu"]["functions"].size(), 1U);
  EXPECT_EQ(memory["criu"]["functions"][0]["function"], "copy_page");
  EXPECT_DOUBLE_EQ(memory["criu"]["functions"][0]["share"].get<double>(), 0.6);
  EXPECT_EQ(memory["target"]["samples"], 10);
}

TEST_F(StackSummaryTest, SamplesWithoutAPhaseComeLast) {
  add("", "criu", "early", 2);
  EXPECT_EQ(summary_of(profile_, 1).phases.back().phase, "");
  EXPECT_EQ(summary_of(profile_, 1).phases.back().weight.samples, 2U);
}

TEST_F(StackSummaryTest, ACheckpointWithoutProfilesHasNone) {
  std::vector<std::string> notes;
  EXPECT_TRUE(stacks_of_checkpoint("/nonexistent", notes).empty());
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace kymo::report
