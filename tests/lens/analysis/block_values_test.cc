#include "lens/analysis/block_values.h"

#include <gtest/gtest.h>

#include "temp_folder.h"

namespace kymo::analysis {
namespace {

class BlockValues : public ::testing::Test {
 protected:
  // The blocks of a recording that has one counter and one gauge.
  std::vector<ColumnBlocks> blocks(const std::string& rows, const TimeWindow& window,
                                   std::uint64_t block_ns) {
    const std::string path = folder_.file("run.tsv", "Time (ns)\tgrown\tlevel\n" + rows);
    static_cast<void>(folder_.file("run.meta.json", R"({"format_version":1,"columns":[
      {"name":"grown","metric":"grown","kind":"counter","unit":"bytes"},
      {"name":"level","metric":"level","kind":"gauge","unit":"count"}]})"));
    auto summary = summarize(path);
    EXPECT_TRUE(summary.ok());
    auto read = read_blocks(*summary, window, block_ns);
    EXPECT_TRUE(read.ok());
    return *read;
  }

  tests::TempFolder folder_;
};

constexpr std::uint64_t kSecond = 1'000'000'000;

std::string row(double seconds, int grown, int level) {
  return std::to_string(static_cast<std::uint64_t>(seconds * 1e9)) + "\t" + std::to_string(grown) +
         "\t" + std::to_string(level) + "\n";
}

TEST_F(BlockValues, CountersAreRatesAndGaugesMeans) {
  const auto read =
      blocks(row(0, 0, 1) + row(1, 10, 3) + row(2, 40, 5) + row(3, 70, 5) + row(4, 70, 9),
             {0, 4 * kSecond}, 2 * kSecond);
  // A block counts from the last row before it to its last. The last row of the recording is in no
  // whole block.
  EXPECT_EQ(read[0].values, (std::vector<double>{10, 30}));
  EXPECT_EQ(read[1].values, (std::vector<double>{2, 4.5}));
  EXPECT_DOUBLE_EQ(read[0].mean, 17.5);
  EXPECT_DOUBLE_EQ(read[1].mean, 4.5);
}

TEST_F(BlockValues, OnlyTheWindowCounts) {
  const auto read = blocks(row(0, 0, 100) + row(1, 90, 1) + row(2, 100, 3) + row(3, 999, 100),
                           {kSecond, 2 * kSecond}, kSecond);
  EXPECT_DOUBLE_EQ(read[0].mean, 10);
  EXPECT_DOUBLE_EQ(read[1].mean, 2);
}

TEST_F(BlockValues, AcrossAGapARateIsThatOfTheWholeGap) {
  const auto read =
      blocks(row(0, 0, 1) + row(0.5, 5, 1) + row(4, 40, 1) + row(4.5, 45, 1) + row(6, 60, 1),
             {0, 6 * kSecond}, kSecond);
  EXPECT_EQ(read[0].values, (std::vector<double>{10, 10}));
}

// The columns of a source that is read each second row had no growth in one block, and twice as much in the next.
TEST_F(BlockValues, ASourceThatIsReadSeldomGrowsBetweenItsReadings) {
  std::string rows = "Time (ns)\tdisk_bytes\tprofiler_disk_age_ns\n";
  for (std::uint64_t second = 0; second <= 6; ++second) {
    rows += std::to_string(second * kSecond) + "\t" + std::to_string(second / 2 * 20) + "\t" +
            std::to_string(second % 2 * kSecond) + "\n";
  }
  const auto summary = summarize(folder_.file("seldom.tsv", rows));
  ASSERT_TRUE(summary.ok());
  const auto read = read_blocks(*summary, {0, 6 * kSecond}, kSecond);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].values, (std::vector<double>{10, 10}));
  EXPECT_DOUBLE_EQ((*read)[0].mean, 10);
}

TEST_F(BlockValues, ARestartDoesNotCountAsGrowth) {
  const auto read = blocks(row(0, 50, 1) + row(1, 60, 1) + row(2, 5, 1) + row(3, 15, 1),
                           {0, 3 * kSecond}, 3 * kSecond);
  EXPECT_DOUBLE_EQ(read[0].mean, 20.0 / 3);
}

TEST_F(BlockValues, AWindowWithoutRowsHasNone) {
  const auto read = blocks(row(0, 0, 1) + row(9, 9, 1), {kSecond, 2 * kSecond}, kSecond);
  EXPECT_TRUE(read[0].values.empty());
  EXPECT_EQ(read[0].mean, 0);
}

}  // namespace
}  // namespace kymo::analysis
