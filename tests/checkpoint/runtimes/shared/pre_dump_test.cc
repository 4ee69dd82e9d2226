#include "checkpoint/runtimes/shared/pre_dump.h"

#include <gtest/gtest.h>

namespace kymo::runtime {
namespace {

std::vector<PreDumpRound> rounds_of(const std::vector<std::uint64_t>& pages) {
  std::vector<PreDumpRound> rounds;
  for (const std::uint64_t written : pages) {
    rounds.emplace_back().pages_written = written;
  }
  return rounds;
}

TEST(PreDump, AnotherRoundIsWorthItsTimeWhileTheyShrink) {
  EXPECT_TRUE(another_round_pays({}));
  EXPECT_TRUE(another_round_pays(rounds_of({100'000})));
  EXPECT_TRUE(another_round_pays(rounds_of({100'000, 40'000})));
  EXPECT_TRUE(another_round_pays(rounds_of({100'000, 40'000, 10'000})));
}

TEST(PreDump, NoFurtherRoundIsMadeIfLittleIsLeftOrGained) {
  EXPECT_FALSE(another_round_pays(rounds_of({200})));
  EXPECT_FALSE(another_round_pays(rounds_of({100'000, 256})));
  EXPECT_FALSE(another_round_pays(rounds_of({100'000, 95'000})));
  EXPECT_FALSE(another_round_pays(rounds_of({100'000, 40'000, 41'000})));
}

}  // namespace
}  // namespace kymo::runtime
