#include "profiler/stacks/output.h"

#include <gtest/gtest.h>

namespace kymo::stacks {
namespace {

Trace trace(const std::string& process, std::vector<Frame> frames) {
  Trace made;
  made.process = process;
  made.frames = std::move(frames);
  return made;
}

// A profile whose frames are in modules without names.
class OutputTest : public ::testing::Test {
 protected:
  OutputTest() {
    one_.path = "/usr/bin/one";
    other_.path = "/usr/lib/other.so";
    Trace truncated = trace("web", {{&one_, 1}, {&other_, 2}, {&one_, 3}});
    truncated.truncated = true;
    profile_.traces[truncated] = {3, 300};
    profile_.traces[trace("a;b\nc", {{&other_, 2}})] = {1, 100};
    profile_.traces[trace("web", {{nullptr, 7}, {&one_, 1}})] = {2, 200};
  }

  Module one_;
  Module other_;
  Profile profile_;
  Symbols symbols_;
};

TEST_F(OutputTest, FoldedStacksBeginAtTheRoot) {
  EXPECT_EQ(folded(profile_, symbols_),
            "a?b?c;[other.so] 1\n"
            "web;[one];[unknown] 2\n"
            "web;[truncated];[one];[other.so];[one] 3\n");
}

TEST_F(OutputTest, OfWaitsMicrosecondsAreFolded) {
  Profile waits;
  waits.waits = true;
  waits.traces[trace("web", {{&one_, 1}})] = {2, 5'000'999};
  EXPECT_EQ(folded(waits, symbols_), "web;[one] 5000\n");
}

TEST_F(OutputTest, FunctionsAreSortedByTheirOwnTimeOrByTheTotal) {
  Profile profile;
  profile.traces[trace("web", {{&one_, 1}, {&other_, 2}})] = {1, 100};
  profile.traces[trace("web", {{&other_, 2}})] = {1, 10};
  EXPECT_EQ(hottest(named(profile, symbols_)).functions.front().name, "[one]");
  EXPECT_EQ(hottest(named(profile, symbols_), Order::total).functions.front().name, "[other.so]");
}

TEST_F(OutputTest, AFunctionCountsOnceInAStack) {
  const Hottest found = hottest(named(profile_, symbols_));
  ASSERT_EQ(found.functions.size(), 3U);
  EXPECT_EQ(found.functions[0].name, "[one]");
  EXPECT_EQ(found.functions[0].self.samples, 3U);
  EXPECT_EQ(found.functions[0].total.samples, 5U);
  EXPECT_EQ(found.functions[1].name, "[unknown]");
  EXPECT_EQ(found.sum.value, 600U);
  EXPECT_EQ(found.frames, 14U);
  EXPECT_EQ(found.unknown_frames, 14U);
  EXPECT_EQ(found.truncated, 3U);
}

}  // namespace
}  // namespace kymo::stacks
