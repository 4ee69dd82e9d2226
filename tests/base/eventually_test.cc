#include <gtest/gtest.h>

#include <thread>

#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

using std::chrono::milliseconds;

TEST(Eventually, WhatNeverComesIsNotWaitedForForEver) {
  EXPECT_TRUE(eventually([] { return true; }, milliseconds(0)));
  EXPECT_FALSE(eventually([] { return false; }, milliseconds(10)));
}

TEST(Eventually, ATimeInWhichTheMachineStoodStillIsNoTimeThatItHad) {
  int looks = 0;
  const auto comes_in_the_third_look = [&] {
    // Stands for a standstill of the machine.
    if (++looks == 1) std::this_thread::sleep_for(milliseconds(600));
    return looks == 3;
  };
  EXPECT_TRUE(eventually(comes_in_the_third_look, milliseconds(500)));
}

}  // namespace
}  // namespace kymo::test
