#include "base/event.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace kymo {
namespace {

constexpr std::uint64_t kLong = 20 * kNanosPerSecond;

TEST(Event, RemembersASignalUntilTheNextWait) {
  Event event;
  event.signal();
  event.signal();
  EXPECT_TRUE(event.wait_until(monotonic_ns() + kLong));
  EXPECT_FALSE(event.poll());
}

TEST(Event, EndsAtTheDeadline) {
  Event event;
  const std::uint64_t deadline = monotonic_ns() + 20'000'000;
  while (monotonic_ns() < deadline) {
    EXPECT_FALSE(event.wait_until(deadline));
  }
}

TEST(Event, DeadlineInThePastDoesNotWait) {
  Event event;
  EXPECT_FALSE(event.wait_until(0));
}

TEST(Event, WakesASleeperForEachOfManySignals) {
  Event ping;
  Event pong;
  constexpr int kRounds = 2000;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (!ping.wait_until(monotonic_ns() + kLong)) {
      }
      pong.signal();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ping.signal();
    while (!pong.wait_until(monotonic_ns() + kLong)) {
    }
  }
  other.join();
}

}  // namespace
}  // namespace kymo
