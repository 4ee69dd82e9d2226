#include "daemon/pipeline.h"

#include <gtest/gtest.h>

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
     }},
    {"three",
     [](Trace& t) -> Result<void> {
       t.done += "3";
       return {};
     }},
}};

TEST(PipelineTest, StepsRunInOrderAndEachIsTimed) {
  Trace trace;
  std::vector<StepTime> times;
  EXPECT_TRUE(run_steps(kSteps, trace, &times).ok());
  EXPECT_EQ(trace.done, "123");
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[1].name, "two");
}

TEST(PipelineTest, AFailureEndsItAndIsTimedToo) {
  Trace trace{"", true};
  std::vector<StepTime> times;
  const Result<void> result = run_steps(kSteps, trace, &times);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "two failed");
  EXPECT_EQ(trace.done, "12");
  EXPECT_EQ(times.size(), 2U);
}

}  // namespace
}  // namespace kymo::daemon
