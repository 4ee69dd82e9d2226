#include "base/patience.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>

namespace kymo {
namespace {

using std::chrono::milliseconds;

TEST(Patience, AnAnswerComesThroughAndNoAnswerIsNotWaitedFor) {
  EXPECT_EQ(within(milliseconds(60'000), [] { return std::string("here"); }), "here");
  // The thread goes on after the call has returned, so it has its own copies of all that it uses.
  const auto release = std::make_shared<std::promise<void>>();
  const auto held = std::make_shared<std::future<void>>(release->get_future());
  const auto none = within(milliseconds(1), [held] {
    held->wait();
    return 1;
  });
  EXPECT_FALSE(none.has_value());
  release->set_value();
}

TEST(Patience, WhatThrowsIsNoAnswer) {
  const auto none =
      within(milliseconds(60'000), []() -> int { throw std::runtime_error("no memory"); });
  EXPECT_FALSE(none.has_value());
}

}  // namespace
}  // namespace kymo
