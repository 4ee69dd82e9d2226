#include "base/turns.h"

#include <gtest/gtest.h>

#include <thread>

namespace kymo {
namespace {

using std::chrono::milliseconds;

TEST(TurnsTest, OneMoreThanMayWorkHasNoTurn) {
  Turns turns(2, 0);
  const Turns::Turn first = turns.take(milliseconds(0));
  {
    const Turns::Turn second = turns.take(milliseconds(0));
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(turns.take(std::chrono::hours(1)), nullptr) << "this queue lets nobody wait";
  }
  EXPECT_NE(turns.take(milliseconds(0)), nullptr);
}

TEST(TurnsTest, OneThatWaitsGetsTheTurnThatEnds) {
  Turns turns(1, 1);
  Turns::Turn first = turns.take(milliseconds(0));
  std::thread waits([&] { EXPECT_NE(turns.take(std::chrono::hours(1)), nullptr); });
  first.reset();
  waits.join();
}

TEST(TurnsTest, AWaiterGivesUpAfterItsTime) {
  Turns turns(1, 1);
  const Turns::Turn first = turns.take(milliseconds(0));
  EXPECT_EQ(turns.take(milliseconds(1)), nullptr);
}

}  // namespace
}  // namespace kymo
