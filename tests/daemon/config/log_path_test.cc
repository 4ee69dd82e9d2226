#include "daemon/config/log_path.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

TEST(LogPath, IsTheAskedOneWhileThatIsFree) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(free_log_path(folder.path() + "/run.tsv"), folder.path() + "/run.tsv");
  EXPECT_EQ(free_log_path("/no/such/folder/run.tsv"), "/no/such/folder/run.tsv");
}

TEST(LogPath, LeavesWhatIsThereAndTakesTheNextFreeName) {
  const test::TemporaryDirectory folder;
  const std::string run = folder.file("run.tsv", "earlier");
  EXPECT_EQ(free_log_path(run), folder.path() + "/run-2.tsv");
  folder.file("run-2.tsv", "later");
  EXPECT_EQ(free_log_path(run), folder.path() + "/run-3.tsv");
  EXPECT_EQ(free_log_path(folder.file("run.tsv.zst", "")), folder.path() + "/run-2.tsv.zst");
  EXPECT_EQ(free_log_path(folder.file("two.dots.tsv", "")), folder.path() + "/two.dots-2.tsv");
  EXPECT_EQ(free_log_path(folder.file("plain", "")), folder.path() + "/plain-2");
}

TEST(LogPath, WhatAnEarlierStartLeftBesideItTakesItsNameToo) {
  const test::TemporaryDirectory folder;
  folder.file("run.gaps.tsv", "");
  EXPECT_EQ(free_log_path(folder.path() + "/run.tsv"), folder.path() + "/run-2.tsv");
  folder.file("run-2.3.meta.json", "{}");  // a part of the recording run-2
  EXPECT_EQ(free_log_path(folder.path() + "/run.tsv"), folder.path() + "/run-3.tsv");
  folder.file("run-x.tsv", "");
  folder.file("runner-7.tsv", "");
  folder.file("run-9.txt", "");
  EXPECT_EQ(free_log_path(folder.path() + "/run.tsv"), folder.path() + "/run-3.tsv");
}

TEST(LogPath, KnowsThePartsOfEarlierStartsInTheirOrder) {
  const test::TemporaryDirectory folder;
  std::vector<std::string> expected;
  for (const char* stem : {"run", "run.2", "run.10", "run-2.1", "run-10"}) {
    expected.push_back(folder.file(std::string(stem) + ".tsv", "rows"));
    folder.file(std::string(stem) + ".meta.json", "{}");
    folder.file(std::string(stem) + ".gaps.tsv", "");
  }
  folder.file("run-3.tsv", "no recording of ours: nothing describes it");
  EXPECT_EQ(earlier_parts(folder.path() + "/run.tsv"), expected);
}

}  // namespace
}  // namespace kymo::daemon
