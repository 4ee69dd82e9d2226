#include "daemon/recording/tee_sink.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

// Counts what it gets. Fails on request.
class CountingSink : public Sink {
 public:
  Result<void> open(const RecordingInfo&) override { return result(); }
  Result<void> write(const Rows& given) override {
    rows += given.count;
    return result();
  }
  void gap(const Gap& gap) override { gaps += gap.ticks; }
  Result<void> close(const ProfilerStats&) override {
    closed = true;
    return result();
  }
  [[nodiscard]] Result<void> result() const {
    return failing ? Result<void>(Error{Code::resource_exhausted, "disk full"}) : Result<void>();
  }

  [[nodiscard]] LostRows lost_rows() const override { return lost; }

  LostRows lost;
  std::size_t rows = 0;
  std::uint64_t gaps = 0;
  bool closed = false;
  bool failing = false;
};

struct TeeSinkTest : testing::Test {
  std::shared_ptr<CountingSink> history = std::make_shared<CountingSink>();
  std::shared_ptr<CountingSink> file = std::make_shared<CountingSink>();
  TeeSink tee{history, file};
};

TEST_F(TeeSinkTest, BothGetEverything) {
  EXPECT_TRUE(tee.open({}).ok());
  EXPECT_TRUE(tee.write(Rows{nullptr, 3, 1}).ok());
  tee.gap(Gap{0, 10, 7, MissCause::late});
  EXPECT_TRUE(tee.close({}).ok());
  for (const auto& sink : {history, file}) {
    EXPECT_EQ(sink->rows, 3U);
    EXPECT_EQ(sink->gaps, 7U);
    EXPECT_TRUE(sink->closed);
  }
}

TEST_F(TeeSinkTest, AFullDiskUnderTheFileCostsTheHistoryNothing) {
  file->failing = true;
  EXPECT_EQ(tee.write(Rows{nullptr, 3, 1}).error().message, "disk full");
  tee.gap(Gap{0, 3, 3, MissCause::sink_error});
  EXPECT_EQ(history->rows, 3U);
  EXPECT_EQ(history->gaps, 0U) << "the history got all rows, so it has no gap";
  EXPECT_EQ(file->gaps, 3U);
  EXPECT_FALSE(tee.close({}).ok());
  EXPECT_TRUE(history->closed);
}

TEST_F(TeeSinkTest, WhatEitherHasLostIsTold) {
  EXPECT_EQ(tee.lost_rows().text, "");
  history->lost = {0, "a snapshot failed"};
  EXPECT_EQ(tee.lost_rows().text, "a snapshot failed");
  file->lost = {3, "log.tsv was removed"};
  EXPECT_EQ(tee.lost_rows().text, "log.tsv was removed; a snapshot failed");
  EXPECT_EQ(tee.lost_rows().rows, 3U);
}

TEST_F(TeeSinkTest, AFileThatCannotBeOpenedIsTheStartsError) {
  file->failing = true;
  EXPECT_FALSE(tee.open({}).ok());
}

}  // namespace
}  // namespace kymo::daemon
