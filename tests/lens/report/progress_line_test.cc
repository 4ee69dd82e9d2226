#include "lens/report/progress_line.h"

#include <gtest/gtest.h>

namespace kymo::report {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

ProgressLine half_done() {
  return {"dump churn",    "memory",      256 * kMebibyte, 512 * kMebibyte,
          128 * kMebibyte, 2'000'000'000, 2'100'000'000};
}

TEST(ProgressLineTest, AWideTerminalHasItAll) {
  EXPECT_EQ(progress_line(half_done(), 100),
            "dump churn  memory  [===============>               ]   50 %  256.0/512.0 MiB  "
            "128 MiB/s  2.0 s left");
}

TEST(ProgressLineTest, ANarrowOneLosesRateSizesAndPhaseInThisOrder) {
  EXPECT_EQ(progress_line(half_done(), 60),
            "dump churn  memory   50 %  256.0/512.0 MiB  2.0 s left");
  EXPECT_EQ(progress_line(half_done(), 50), "dump churn  memory   50 %  2.0 s left");
  EXPECT_EQ(progress_line(half_done(), 32), "dump churn   50 %  2.0 s left");
  EXPECT_EQ(progress_line(half_done(), 12), "dump churn  ");
  for (std::size_t width = 0; width < 120; ++width) {
    EXPECT_LE(progress_line(half_done(), width).size(), width);
  }
}

TEST(ProgressLineTest, WhatIsNotKnownIsSaidToBeUnknown) {
  ProgressLine line = half_done();
  line.remaining_ns.reset();
  EXPECT_NE(progress_line(line, 120).find("2.1 s, end unknown"), std::string::npos);
  line.total_bytes.reset();
  const std::string text = progress_line(line, 120);
  EXPECT_EQ(text.find('['), std::string::npos) << text;
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
  EXPECT_NE(text.find("256 MiB"), std::string::npos) << text;
}

TEST(ProgressLineTest, ANameCannotMoveTheCursor) {
  ProgressLine line = half_done();
  line.what = "dump \x1b[2J\n";
  const std::string text = progress_line(line, 120);
  EXPECT_NE(text.find("dump ?[2J?"), std::string::npos) << text;
}

TEST(ProgressLineTest, MoreThanExpectedFillsTheBarAndNoMore) {
  ProgressLine line = half_done();
  line.done_bytes = 600 * kMebibyte;
  EXPECT_NE(progress_line(line, 120).find("100 %"), std::string::npos);
  EXPECT_NE(progress_line(line, 120).find("=]"), std::string::npos);
}

}  // namespace
}  // namespace kymo::report
