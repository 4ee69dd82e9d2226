#include "recorder/sampling/ring/gap_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace kymo {
namespace {

std::vector<Gap> take_all(GapQueue& queue) {
  std::vector<Gap> gaps;
  for (Gap gap; queue.try_take(&gap);) {
    gaps.push_back(gap);
  }
  return gaps;
}

TEST(GapQueue, MergesAdjacentTicksOfOneCause) {
  GapQueue queue(10);
  queue.note(3, 5, MissCause::late);
  queue.note(5, 6, MissCause::late);
  queue.note(6, 6, MissCause::late);
  EXPECT_TRUE(take_all(queue).empty());
  queue.close();
  const std::vector<Gap> gaps = take_all(queue);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].start_ns, 30U);
  EXPECT_EQ(gaps[0].end_ns, 60U);
  EXPECT_EQ(gaps[0].ticks, 3U);
}

TEST(GapQueue, KeepsCausesAndDistancesApart) {
  GapQueue queue(10);
  queue.note(0, 2, MissCause::late);
  queue.note(2, 4, MissCause::ring_full);
  queue.note(8, 9, MissCause::ring_full);
  queue.close();
  const std::vector<Gap> gaps = take_all(queue);
  ASSERT_EQ(gaps.size(), 3U);
  EXPECT_EQ(gaps[1].cause, MissCause::ring_full);
  EXPECT_EQ(gaps[2].start_ns, 80U);
}

TEST(GapQueue, LosesNoTickWhenNobodyTakes) {
  GapQueue queue(10);
  const std::uint64_t noted = 3 * GapQueue::kCapacity;
  for (std::uint64_t tick = 0; tick < noted; ++tick) {
    queue.note(2 * tick, 2 * tick + 1, MissCause::late);
    queue.close();
  }
  std::uint64_t ticks = 0;
  while (queue.has_open()) {
    for (const Gap& gap : take_all(queue)) {
      ticks += gap.ticks;
    }
    queue.close();
  }
  for (const Gap& gap : take_all(queue)) {
    ticks += gap.ticks;
  }
  EXPECT_EQ(ticks, noted);
}

}  // namespace
}  // namespace kymo
