#include "lens/analysis/row_range.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/tsv_reader.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

struct RowRangeTest : testing::Test {
  // Writes a recording with rows at these times, followed by `rest`.
  void record(const std::vector<std::uint64_t>& times, const std::string& rest = "",
              std::size_t padding = 0) {
    std::ofstream file(path);
    file << "Time (ns)\ta\n";
    for (const std::uint64_t time : times) {
      file << time << '\t' << std::string(padding, '0') << time * 2 << '\n';
    }
    file << rest;
    file.close();
    fd = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    text = TsvReader::open(path).value().plain_text().value();
    text.fd = fd.get();
  }
  std::vector<std::uint64_t> times_between(std::uint64_t from, std::uint64_t to) {
    const PlainText part = rows_between(text, from, to).value();
    std::vector<std::uint64_t> times;
    take_in_parallel(part, 1, [&](const RowPiece& piece) {
      times.insert(times.end(), piece.rows.times().begin(), piece.rows.times().end());
    });
    return times;
  }

  std::vector<std::uint64_t> sampled(std::size_t count) {
    std::vector<std::uint64_t> times;
    EXPECT_TRUE(sample_rows(text, count, [&](const RowBlock& row) {
      ASSERT_EQ(row.rows(), 1U);
      EXPECT_EQ(row.column(1)[0], 2 * row.times()[0]);
      times.push_back(row.times()[0]);
    }));
    return times;
  }

  std::string text_at(std::uint64_t offset, std::size_t size) const {
    std::string read(size, '\0');
    EXPECT_EQ(pread(fd.get(), read.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    return read;
  }

  tests::TempFolder folder;
  std::string path = folder / "rows.tsv";
  FileDescriptor fd;
  PlainText text;
};

TEST_F(RowRangeTest, TheRowsOfARangeAndTheOneBefore) {
  record({10, 20, 30, 40, 50});
  using Times = std::vector<std::uint64_t>;
  EXPECT_EQ(times_between(30, 40), (Times{20, 30, 40}));
  EXPECT_EQ(times_between(25, 39), (Times{20, 30}));
  EXPECT_EQ(times_between(0, 9), Times{});
  EXPECT_EQ(times_between(0, 10), (Times{10}));
  EXPECT_EQ(times_between(51, 99), (Times{50}));
  EXPECT_EQ(times_between(0, UINT64_MAX), (Times{10, 20, 30, 40, 50}));
  EXPECT_EQ(first_time(text).value(), 10U);
}

TEST_F(RowRangeTest, ALongRecordingWhereverTheRangeLies) {
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 200'000; ++i) times.push_back(i * 1000 + i % 7);
  record(times);
  for (const std::size_t at :
       std::vector<std::size_t>{0, 1, 2, 777, 65'535, 65'536, 100'000, 199'990}) {
    const std::vector<std::uint64_t> expected(
        times.begin() + static_cast<long>(at == 0 ? 0 : at - 1),
        times.begin() + static_cast<long>(at + 9));
    EXPECT_EQ(times_between(times[at], times[at + 8]), expected) << at;
  }
}

TEST_F(RowRangeTest, LongLinesAndLinesThatAreNoRows) {
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 40; ++i) times.push_back(i * 10);
  record(times, "", 90'000);
  EXPECT_EQ(text_at(rows_between(text, 200, 210).value().begin, 4), "190\t");
  EXPECT_EQ(text_at(rows_between(text, 200, 210).value().end, 4), "220\t");
  record({10, 20}, "damaged\n30\t60\n4");
  EXPECT_EQ(rows_between(text, 30, 99).value().end, text.end - 1)
      << "the last line is cut short, so it is not a row";
  EXPECT_EQ(first_time(text).value(), 10U);
}

TEST_F(RowRangeTest, SamplesFromAllOverTheText) {
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 200'000; ++i) times.push_back(1'000'000 + i * 1000);
  record(times);
  const std::vector<std::uint64_t> some = sampled(500);
  ASSERT_GE(some.size(), 499U);
  ASSERT_LE(some.size(), 501U);
  EXPECT_EQ(some.front(), times.front());
  std::uint64_t widest = 0;
  for (std::size_t i = 1; i < some.size(); ++i) widest = std::max(widest, some[i] - some[i - 1]);
  EXPECT_LT(widest, 2 * 400'000U) << "evenly";
  record({10, 20, 30});
  EXPECT_EQ(sampled(1), (std::vector<std::uint64_t>{10}));
  EXPECT_EQ(sampled(1000), (std::vector<std::uint64_t>{10, 20, 30})) << "each once";
  record({10, 20, 30, 40, 50, 60, 70, 80, 90});
  for (std::size_t count = 0; count < 30; ++count) {
    EXPECT_LE(sampled(count).size(), count) << "never more than asked for";
  }
  record({10, 20}, "damaged\nx\ty\n30\t60\n4");
  EXPECT_EQ(sampled(1000), (std::vector<std::uint64_t>{10, 20, 30}))
      << "lines that are no rows are skipped";
}

TEST_F(RowRangeTest, ARecordingWithoutRowsHasNoTimes) {
  record({});
  EXPECT_TRUE(sampled(10).empty());
  EXPECT_TRUE(times_between(0, UINT64_MAX).empty());
  EXPECT_EQ(first_time(text).value(), std::nullopt);
}

}  // namespace
}  // namespace kymo::analysis
