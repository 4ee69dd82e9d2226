#include "daemon/request/pipeline.h"

#include <gtest/gtest.h>

#include <new>

namespace kymo::daemon {
namespace {

struct Trace {
  std::string done;
  bool fail = false;
};

constexpr std::array<Step<Trace>, 3> kSteps{{
    {"one",
     [](Trace& t) -> Result<void> {
       t.done += "1";
       return {};
     }},
    {"two",
     [](Trace& t) -> Result<void> {
       t.done += "2";
       if (t.fail) return Error{Code::aborted, "two failed"};
       return {};
     },
     "slow"},
    {"three",
     [](Trace& t) -> Result<void> {
       t.done += "3";
       return {};
     }},
}};

TEST(PipelineTest, StepsRunInOrderAndEachIsAScope) {
  Trace trace;
  ScopeTree tree("request");
  {
    const EnterScope here(tree);
    EXPECT_TRUE(run_steps(kSteps, trace).ok());
  }
  EXPECT_EQ(trace.done, "123");
  const auto records = tree.records();
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].name, "two");
  EXPECT_EQ(records[2].category, "slow");
  EXPECT_EQ(records[3].parent, 0U);
}

TEST(PipelineTest, AFailureEndsItAndTheTreeEndsThereWithItsError) {
  Trace trace{"", true};
  ScopeTree tree("request");
  const EnterScope here(tree);
  const Result<void> result = run_steps(kSteps, trace);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "two failed");
  EXPECT_EQ(trace.done, "12");
  const auto records = tree.records();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].error, "");
  EXPECT_EQ(records[2].error, "two failed");
  EXPECT_FALSE(records[2].unfinished);
}

constexpr std::array<Step<Trace>, 2> kThrowing{{
    {"allocate", [](Trace&) -> Result<void> { throw std::bad_alloc(); }},
    {"never",
     [](Trace& t) -> Result<void> {
       t.done += "never";
       return {};
     }},
}};

TEST(PipelineTest, WhatAStepThrowsIsItsErrorAndNothingFollows) {
  Trace trace;
  ScopeTree tree("request");
  const EnterScope here(tree);
  const Result<void> result = run_steps(kThrowing, trace);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::internal);
  EXPECT_EQ(result.error().message, "allocate: std::bad_alloc");
  EXPECT_EQ(trace.done, "");
  EXPECT_EQ(tree.records()[1].error, "allocate: std::bad_alloc");
}

}  // namespace
}  // namespace kymo::daemon
