#include "base/patience.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>

#include "support/temporary_directory.h"

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

TEST(Patience, APlaceThatDoesNotAnswerIsNotAskedAgainUntilItHasAnswered) {
  SilentPlace place;
  EXPECT_EQ(place.ask([] { return 1; }, milliseconds(60'000)), 1);
  const auto release = std::make_shared<std::promise<void>>();
  const auto held = std::make_shared<std::future<void>>(release->get_future());
  const auto wait = [held] {
    held->wait();
    return 1;
  };
  EXPECT_FALSE(place.ask(wait, milliseconds(1)).has_value());
  EXPECT_TRUE(place.is_silent());
  EXPECT_FALSE(place.ask([] { return 2; }, milliseconds(60'000)).has_value());
  release->set_value();
  EXPECT_TRUE(test::eventually([&] { return !place.is_silent(); }));
  EXPECT_EQ(place.ask([] { return 3; }, milliseconds(60'000)), 3);
}

TEST(Patience, APlaceIsAskedAgainAfterAQuestionThatThrew) {
  SilentPlace place;
  const auto fails = []() -> int { throw std::runtime_error("no memory"); };
  EXPECT_FALSE(place.ask(fails, milliseconds(60'000)).has_value());
  EXPECT_TRUE(test::eventually([&] { return !place.is_silent(); }));
}

}  // namespace
}  // namespace kymo
