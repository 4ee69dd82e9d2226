#include "profiler/stacks/share_test.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace kymo::stacks {
namespace {

struct ShareCase {
  SampleCounts part;
  SampleCounts all;
  double p;
};

// The expected values were computed in Python with integers of any size. For k = k1 + k2 of N = n1 + n2
// samples:
//   2 * sum(comb(n2, x) * comb(n1, k - x) for x in range(k2, min(k, n2) + 1)) / comb(N, k)
// If k2 is below its mean, the sum is from max(0, k - n1) to k2. The result is at most 1.
// The first case is Fisher's tea-tasting experiment, for which he gave the one-sided p himself: 17 /
// 70.
TEST(ShareTest, FewSamplesHaveTheExactP) {
  const ShareCase cases[] = {
      {{1, 3}, {4, 4}, 0.4857142857142857},
      {{0, 6}, {1000, 1000}, 0.031015859961788003},
      {{3, 17}, {500, 700}, 0.02094175859036273},
      {{120, 160}, {1000, 1000}, 0.011861898653907296},
      {{500, 500}, {1000, 1000}, 1.0},
      {{990, 1000}, {1000, 1000}, 0.001909465165341615},
      {{40, 1000}, {200, 9000}, 0.0004186471124502762},
  };
  for (const ShareCase& one : cases) {
    EXPECT_NEAR(fisher_p(one.part, one.all), one.p, one.p * 1e-9) << one.part.after;
    // The result must be the same if the two profiles are exchanged.
    EXPECT_NEAR(fisher_p({one.part.after, one.part.before}, {one.all.after, one.all.before}), one.p,
                one.p * 1e-9)
        << one.part.after;
  }
}

// The same sum, computed in Python with decimals of 50 digits.
TEST(ShareTest, ManySamplesHaveNearlyTheExactP) {
  const ShareCase cases[] = {
      {{60000, 60900}, {200000, 200000}, 0.0019663649213408035},
      {{60000, 61100}, {200000, 200000}, 0.00015550844996943173},
      {{30000, 31300}, {200000, 200000}, 1.1852375600567755e-08},
      {{50000, 51200}, {100000, 100000}, 8.20601623947387e-08},
  };
  for (const ShareCase& one : cases) {
    EXPECT_NEAR(fisher_p(one.part, one.all), one.p, one.p * 0.01) << one.part.after;
  }
}

TEST(ShareTest, TheLowestPIsThatOfAllSamplesOnOneSide) {
  EXPECT_DOUBLE_EQ(lowest_fisher_p({3, 3}, {1000, 1000}), fisher_p({0, 6}, {1000, 1000}));
  EXPECT_GT(lowest_fisher_p({3, 2}, {1000, 1000}), 0.05);
  // Every stack has it, so it cannot differ.
  EXPECT_EQ(lowest_fisher_p({1000, 1000}, {1000, 1000}), 1);
  EXPECT_EQ(lowest_fisher_p({0, 0}, {1000, 1000}), 1);
}

TEST(ShareTest, ImpossibleCountsTellNothing) {
  EXPECT_EQ(fisher_p({0, 0}, {0, 0}), 1);
  EXPECT_EQ(fisher_p({5, 1}, {4, 4}), 1);
  EXPECT_EQ(lowest_fisher_p({5, 1}, {4, 4}), 1);
  const std::uint64_t huge = UINT64_MAX;
  EXPECT_LE(fisher_p({huge, huge / 2}, {huge, huge}), 1);
}

TEST(ShareTest, OnlyWhatCanBeToldCounts) {
  // Two of these four cannot differ, because they have too few samples or are in all stacks. So there
  // are two tests, and the lower p is doubled.
  const std::vector<SampleCounts> parts{{120, 160}, {1, 4}, {1000, 1000}, {500, 500}};
  const auto tested = test_shares(parts, {1000, 1000});
  ASSERT_EQ(tested.size(), 4U);
  ASSERT_TRUE(tested[0] && tested[3]);
  EXPECT_FALSE(tested[1]);
  EXPECT_FALSE(tested[2]);
  EXPECT_NEAR(tested[0]->adjusted_p, 2 * 0.011861898653907296, 1e-9);
  EXPECT_EQ(tested[3]->adjusted_p, 1);
}

// Two profiles of one program with 200 functions. The share of a function is proportional to 1 / rank,
// so a few are hot and most have few samples.
class TwoProfiles {
 public:
  explicit TwoProfiles(std::uint64_t seed) : random_(seed) {
    for (int rank = 1; rank <= 200; ++rank) weights_.push_back(1.0 / rank);
  }
  void make_hotter(std::size_t function, double factor) { weights_[function] *= factor; }
  std::vector<std::uint64_t> drawn(std::uint64_t samples) {
    std::discrete_distribution<std::size_t> which(weights_.begin(), weights_.end());
    std::vector<std::uint64_t> counts(weights_.size());
    for (std::uint64_t i = 0; i < samples; ++i) ++counts[which(random_)];
    return counts;
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> weights_;
};

std::size_t reported(const std::vector<std::uint64_t>& before,
                     const std::vector<std::uint64_t>& after, SampleCounts all) {
  std::vector<SampleCounts> parts;
  for (std::size_t i = 0; i < before.size(); ++i) parts.push_back({before[i], after[i]});
  std::size_t count = 0;
  for (const auto& one : test_shares(parts, all)) count += one && one->adjusted_p < kShareLevel;
  return count;
}

// 5 % of 1000 are 50 false alarms. The limit adds three standard deviations: 3 * sqrt(1000 * 0.05 *
// 0.95).
TEST(ShareTest, ProfilesOfTheSameProgramSeldomRaiseAnAlarm) {
  for (const SampleCounts all : {SampleCounts{1000, 1000}, SampleCounts{300, 3000}}) {
    int alarms = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      TwoProfiles program(seed);
      const auto before = program.drawn(all.before);
      alarms += reported(before, program.drawn(all.after), all) > 0 ? 1 : 0;
    }
    EXPECT_LE(alarms, 50 + 21) << all.before;
  }
}

TEST(ShareTest, AFunctionThatIsTwiceAsHotIsFound) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TwoProfiles program(seed);
    const auto before = program.drawn(3000);
    program.make_hotter(2, 2);  // its share grows from 5.7 % to 10.7 % of the samples
    const auto after = program.drawn(3000);
    const auto p = test_shares(std::vector<SampleCounts>{{before[2], after[2]}}, {3000, 3000});
    found += p[0] && p[0]->p < kShareLevel / 400 ? 1 : 0;
  }
  EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace kymo::stacks
