#include "recorder/sampling/ring/ring_reader.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "recorder/sampling/ring/ring.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

constexpr std::size_t kStride = 3;

// A row that shows whether it is complete: its number, and two words that are computed from it.
std::array<std::uint64_t, kStride> row_of(std::uint64_t number) {
  return {number, number * 0x9E3779B97F4A7C15U, ~number};
}

class RingReaderTest : public TemporaryFolderTest {
 protected:
  std::unique_ptr<Ring> make(std::size_t slots, std::size_t rows) {
    return std::make_unique<Ring>(
        RingMemory::create_file({slots, rows, kStride}, in_folder("ring"), "{}").value());
  }
  // Maps the ring a second time, as another process does.
  std::unique_ptr<RingMemory> look() { return RingMemory::open_file(in_folder("ring")).value(); }
  // Fills a slot with `count` rows, and gives it back in the way of the writer.
  void pass_slot(Ring& ring, std::size_t count) {
    Ring::Slot slot;
    ASSERT_TRUE(ring.try_take_free(&slot));
    for (std::size_t i = 0; i < count; ++i) {
      ring.put_row(slot, i, row_of(number_++).data());
    }
    ring.hand_over(slot);
    Rows rows;
    ASSERT_TRUE(ring.try_take_full(&slot, &rows));
    ring.give_back(slot);
  }
  static std::vector<std::uint64_t> numbers(const std::vector<std::uint64_t>& words) {
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < words.size(); i += kStride) {
      found.push_back(words[i]);
    }
    return found;
  }
  // A thread fills slots without a pause, while this thread reads rows in `memory`.
  void race(Ring& ring, const RingMemory& memory) {
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        pass_slot(ring, 2);
      }
    });
    std::uint64_t last = 0;
    // Only few rows are read completely, because slots are reused at once.
    constexpr std::size_t kSeen = 300;
    std::size_t seen = 0;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (seen < kSeen && std::chrono::steady_clock::now() < give_up) {
      const std::vector<std::uint64_t> words = peek_rows(memory, 4);
      for (std::size_t at = 0; at < words.size(); at += kStride) {
        const auto whole = row_of(words[at]);
        ASSERT_EQ(words[at + 1], whole[1]) << "row " << words[at];
        ASSERT_EQ(words[at + 2], whole[2]) << "row " << words[at];
        ASSERT_TRUE(at == 0 || words[at] > words[at - kStride]);
      }
      if (!words.empty() && words[words.size() - kStride] != last) {
        ASSERT_GT(words[words.size() - kStride], last);
        last = words[words.size() - kStride];
        ++seen;
      }
    }
    stop = true;
    writer.join();
    EXPECT_EQ(seen, kSeen) << "too few different newest rows were read";
  }
  std::uint64_t number_ = 0;
};

TEST_F(RingReaderTest, PeeksAtTheNewestRowsOldestFirst) {
  const auto ring = make(3, 4);
  const auto memory = look();
  EXPECT_TRUE(peek_rows(*memory, 10).empty());
  for (int i = 0; i < 4; ++i) {
    pass_slot(*ring, 4);
  }
  pass_slot(*ring, 2);  // rows 16 and 17
  EXPECT_EQ(numbers(peek_rows(*memory, 1)), (std::vector<std::uint64_t>{17}));
  EXPECT_EQ(numbers(peek_rows(*memory, 4)), (std::vector<std::uint64_t>{14, 15, 16, 17}));
  EXPECT_EQ(numbers(peek_rows(*memory, 100)),
            (std::vector<std::uint64_t>{8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
}

TEST_F(RingReaderTest, SeesRowsInTheCollectorsHand) {
  const auto ring = make(2, 4);
  Ring::Slot slot;
  ASSERT_TRUE(ring->try_take_free(&slot));
  EXPECT_TRUE(peek_rows(*look(), 5).empty());
  ring->put_row(slot, 0, row_of(0).data());
  EXPECT_EQ(numbers(peek_rows(*look(), 5)), (std::vector<std::uint64_t>{0}));
}

TEST_F(RingReaderTest, ARacingWriterNeverShowsATornRow) {
  const auto ring = make(2, 2);  // so few slots that they are reused all the time
  race(*ring, *look());
}

// ThreadSanitizer does not find a race between two mappings of a file, because it takes them for
// different memory. newest_rows() reads the recorder's own mapping. With plain stores of rows, it
// reported a race here.
TEST_F(RingReaderTest, ARacingWriterIsNoDataRaceInItsOwnMapping) {
  const auto ring = make(2, 2);
  race(*ring, ring->memory());
}

}  // namespace
}  // namespace kymo
