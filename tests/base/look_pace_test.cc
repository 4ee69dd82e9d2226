#include "base/look_pace.h"

#include <gtest/gtest.h>

namespace kymo {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Looks for `length_ns`, each taking `cost_ns` of a clock that only the looks and the rests move. Returns how often.
std::uint64_t looks_in(std::uint64_t length_ns, std::uint64_t cost_ns) {
  std::uint64_t now_ns = 7;
  std::uint64_t cpu_ns = 3;
  std::uint64_t looks = 0;
  LookPace pace(kMs, 39, now_ns, cpu_ns);
  for (std::uint64_t due_ns = now_ns + kMs; due_ns < length_ns; ++looks) {
    now_ns = due_ns + cost_ns;
    cpu_ns += cost_ns;
    due_ns = pace.next_ns(now_ns, cpu_ns);
  }
  return looks;
}

TEST(LookPace, ACheapLookIsDueInEachInterval) {
  EXPECT_EQ(looks_in(1000 * kMs, 20'000), 999U);
}

TEST(LookPace, LooksTakeTheSameShareOfACpuWhateverEachTakes) {
  for (const std::uint64_t cost_ns : {100'000U, 1'000'000U, 30'000'000U}) {
    const std::uint64_t length_ns = 100'000 * kMs;
    const std::uint64_t took_ns = looks_in(length_ns, cost_ns) * cost_ns;
    EXPECT_LE(took_ns, length_ns / 40 + cost_ns) << cost_ns;
    EXPECT_GE(took_ns, length_ns / 50) << cost_ns << ": it must not look more seldom than it may";
  }
}

TEST(LookPace, ALookThatWaitedIsNoReasonToRest) {
  LookPace pace(kMs, 39, 0, 0);
  EXPECT_EQ(pace.next_ns(50 * kMs + 1, 10'000), 51 * kMs) << "the ticks before it are left out";
  EXPECT_EQ(pace.next_ns(51 * kMs, 10'000), 52 * kMs);
}

}  // namespace
}  // namespace kymo
