#include "profiler/kept/puller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace kymo::profiles {
namespace {

constexpr std::uint64_t kEveryNs = 60 * kNanosPerSecond;

PullTarget target(int number) {
  return {"target:web", "10.0.0." + std::to_string(number % 250), 6060 + number, ""};
}

TEST(NextTurnTest, EachTargetIsAskedOnceInEachRoundAlwaysAtTheSameInstantInIt) {
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t first = next_turn(target(i), kEveryNs, 1000 * kEveryNs);
    EXPECT_GT(first, 1000 * kEveryNs);
    EXPECT_LE(first, 1001 * kEveryNs);
    EXPECT_EQ(next_turn(target(i), kEveryNs, first), first + kEveryNs)
        << "a target must not be asked twice in a round";
    EXPECT_EQ(next_turn(target(i), kEveryNs, first - 1), first);
    // If a pull is late, the times of the next ones must not change.
    EXPECT_EQ(next_turn(target(i), kEveryNs, first + 7 * kNanosPerSecond), first + kEveryNs);
    EXPECT_EQ(next_turn(target(i), kEveryNs, first + 2 * kEveryNs + 1), first + 3 * kEveryNs);
  }
}

// This also holds for targets on one machine, whose addresses differ only in the port.
TEST(NextTurnTest, TheInstantsOfManyTargetsFillTheRound) {
  constexpr int kTargets = 600;
  std::array<int, 60> in_second{};
  for (int i = 0; i < kTargets; ++i) {
    const std::uint64_t turn = next_turn(target(i), kEveryNs, 0);
    ++in_second.at((turn - 1) % kEveryNs / kNanosPerSecond);
  }
  EXPECT_LE(*std::max_element(in_second.begin(), in_second.end()), 30) << "10 on average";
  EXPECT_GE(*std::min_element(in_second.begin(), in_second.end()), 1);
}

TEST(NextTurnTest, EveryPartOfATargetMatters) {
  const PullTarget one = target(1);
  PullTarget port = one;
  ++port.port;
  PullTarget path = one;
  path.path = "/admin";
  PullTarget service = one;
  service.service = "target:admin";
  for (const PullTarget& other : {port, path, service}) {
    EXPECT_NE(next_turn(one, kEveryNs, 0), next_turn(other, kEveryNs, 0));
  }
}

}  // namespace
}  // namespace kymo::profiles
