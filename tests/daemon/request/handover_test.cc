#include "daemon/request/handover.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/cancellation.h"

namespace kymo::daemon {
namespace {

using Stage = Handover::Stage;

constexpr Handover::Patience kNone{std::chrono::milliseconds(0), std::chrono::milliseconds(0),
                                   std::chrono::milliseconds(0)};

class HandoverTest : public ::testing::Test {
 protected:
  // The limits of a request that was cancelled.
  [[nodiscard]] DiskWait over() {
    cancel_.ask();
    return {&cancel_, 0};
  }
  Cancellation cancel_;
  Handover handover_{"dump process 12", kNone};
};

TEST_F(HandoverTest, ARequestThatEndsIsWaitedFor) {
  const DiskWait never(nullptr, 0);
  std::thread request([&] {
    EXPECT_TRUE(handover_.may_go_on().ok());
    EXPECT_TRUE(handover_.enter_runtime().ok());
    handover_.ended();
  });
  EXPECT_EQ(handover_.wait(never), Stage::ended);
  request.join();
}

TEST_F(HandoverTest, ARequestThatWasLeftBeginsNothing) {
  EXPECT_EQ(handover_.wait(over()), Stage::before);
  EXPECT_EQ(handover_.may_go_on().error().message,
            "dump process 12: it was given up, because a disk did not answer");
  EXPECT_FALSE(handover_.enter_runtime().ok());
}

TEST_F(HandoverTest, ARequestThatWasLeftHoldsNothing) {
  const auto early = std::make_shared<int>();
  const auto late = std::make_shared<int>();
  handover_.hold(early);
  EXPECT_EQ(early.use_count(), 2);
  EXPECT_EQ(handover_.wait(over()), Stage::before);
  EXPECT_EQ(early.use_count(), 1);
  handover_.hold(late);
  EXPECT_EQ(late.use_count(), 1);
}

TEST_F(HandoverTest, WhatItHoldsIsItsOwnWhileTheRuntimeWorks) {
  const auto held = std::make_shared<int>();
  handover_.hold(held);
  EXPECT_TRUE(handover_.enter_runtime().ok());
  EXPECT_EQ(handover_.wait(over()), Stage::in_runtime);
  EXPECT_EQ(held.use_count(), 2);
  handover_.ended();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(HandoverTest, AKnownOutcomeIsAnsweredAlsoWithoutACancellation) {
  EXPECT_TRUE(handover_.enter_runtime().ok());
  handover_.known();
  EXPECT_EQ(handover_.wait({nullptr, 0}), Stage::known);
}

}  // namespace
}  // namespace kymo::daemon
