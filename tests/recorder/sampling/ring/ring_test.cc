#include "recorder/sampling/ring/ring.h"

#include <gtest/gtest.h>

#include <array>

#include "support/make_ring.h"

namespace kymo {
namespace {

TEST(Ring, HandsSlotsOverInOrderWithTheirRows) {
  const auto ring = make_ring(3, 4, 1);
  for (std::uint64_t round = 0; round < 10; ++round) {
    Ring::Slot slot;
    ASSERT_TRUE(ring->try_take_free(&slot));
    const std::size_t count = round % 4 + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::array<std::uint64_t, 2> row{round, i};
      ring->put_row(slot, i, row.data());
    }
    ring->hand_over(slot);
    Rows rows;
    Ring::Slot full;
    ASSERT_TRUE(ring->try_take_full(&full, &rows));
    ASSERT_EQ(rows.count, count);
    EXPECT_EQ(rows.row(count - 1)[0], round);
    EXPECT_EQ(rows.row(count - 1)[1], count - 1);
    ring->give_back(full);
  }
}

TEST(Ring, HasNoMoreSlotsThanItWasMadeWith) {
  const auto ring = make_ring(2, 1, 1);
  Ring::Slot a;
  Ring::Slot b;
  Ring::Slot c;
  EXPECT_TRUE(ring->try_take_free(&a));
  EXPECT_TRUE(ring->try_take_free(&b));
  EXPECT_FALSE(ring->try_take_free(&c));
  Rows rows;
  EXPECT_FALSE(ring->try_take_full(&c, &rows));
  ring->hand_over(b);
  ASSERT_TRUE(ring->try_take_full(&c, &rows));
  EXPECT_EQ(c.index, b.index);
  EXPECT_EQ(rows.count, 0U);
  ring->give_back(c);
  EXPECT_TRUE(ring->try_take_free(&c));
}

TEST(Ring, RefusesASizeThatNoMachineHas) {
  const auto ring = RingMemory::create_private({SIZE_MAX / 64, 1000, 100});
  ASSERT_FALSE(ring);
  EXPECT_NE(ring.error().message.find("ask for fewer"), std::string::npos);
}

}  // namespace
}  // namespace kymo
