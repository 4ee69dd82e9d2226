#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "recorder/sampling/ring/ring.h"
#include "support/make_ring.h"

namespace kymo {
namespace {

// The smallest ring. Each row contains what the reader must find in it.
TEST(RingStress, EveryRowArrivesOnceWholeAndInOrder) {
  constexpr std::uint64_t kSlots = 200'000;
  constexpr std::size_t kRows = 3;
  const auto ring = make_ring(2, kRows, 2);
  std::thread collector([&] {
    std::uint64_t next = 0;
    for (std::uint64_t n = 0; n < kSlots; ++n) {
      Ring::Slot slot;
      while (!ring->try_take_free(&slot)) {
        std::this_thread::yield();
      }
      for (std::size_t i = 0; i < n % kRows + 1; ++i, ++next) {
        const std::array<std::uint64_t, 3> row{next, ~next, next * 0x9E3779B97F4A7C15U};
        ring->put_row(slot, i, row.data());
      }
      ring->hand_over(slot);
    }
  });
  std::uint64_t expected = 0;
  for (std::uint64_t n = 0; n < kSlots; ++n) {
    Ring::Slot slot;
    Rows rows;
    while (!ring->try_take_full(&slot, &rows)) {
      std::this_thread::yield();
    }
    ASSERT_EQ(rows.count, n % kRows + 1);
    for (std::size_t i = 0; i < rows.count; ++i, ++expected) {
      ASSERT_EQ(rows.row(i)[0], expected);
      ASSERT_EQ(rows.row(i)[1], ~expected);
      ASSERT_EQ(rows.row(i)[2], expected * 0x9E3779B97F4A7C15U);
    }
    ring->give_back(slot);
  }
  collector.join();
}

}  // namespace
}  // namespace kymo
