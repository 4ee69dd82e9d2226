#include "daemon/stored/space_bound.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

store::Checkpoint kept(const std::string& id, const std::string& job, std::uint64_t bytes,
                       const std::string& directory = {}) {
  store::Checkpoint checkpoint;
  checkpoint.id = id;
  checkpoint.job_id = job;
  checkpoint.directory = directory.empty() ? "/s/checkpoints/" + id : directory;
  checkpoint.state = store::CheckpointState::complete;
  checkpoint.image_bytes = bytes;
  return checkpoint;
}

std::string gone(const std::vector<store::Checkpoint>& all, const SpaceBound& bound) {
  std::string ids;
  for (const store::Checkpoint& checkpoint : beyond_bound(all, "/s", bound)) {
    ids += (ids.empty() ? "" : " ") + checkpoint.id;
  }
  return ids;
}

TEST(SpaceBoundTest, TheOldestGoUntilTheRestFits) {
  const std::vector<store::Checkpoint> all = {kept("1", "a", 10), kept("2", "b", 10),
                                              kept("3", "a", 10), kept("4", "b", 10),
                                              kept("5", "a", 10)};
  EXPECT_EQ(gone(all, {}), "");
  EXPECT_EQ(gone(all, {50, 0}), "");
  EXPECT_EQ(gone(all, {49, 0}), "1");
  EXPECT_EQ(gone(all, {30, 0}), "1 2");
}

TEST(SpaceBoundTest, WhatIsAboutToGoIsSaidWithTheReason) {
  store::Checkpoint failed = kept("f", "a", 0);
  failed.state = store::CheckpointState::failed;
  EXPECT_EQ(text_of_removal({}, {1, 1}), "");
  EXPECT_EQ(text_of_removal({kept("1", "a", 1024)}, {0, 2}),
            "removing 1 old checkpoint with 1 KiB of images now: 1 complete one, more than "
            "--keep-count 2 allows");
  EXPECT_EQ(
      text_of_removal({kept("1", "a", 1024), kept("2", "a", 1024), failed}, {2048, 2}),
      "removing 3 old checkpoints with 2 KiB of images now: 2 complete ones, more than "
      "--keep-count 2 and --keep-bytes 2 KiB allow; 1 failed one, of which the newest 2 of each "
      "job stay");
  EXPECT_EQ(text_of_removal({failed}, {}),
            "removing 1 old checkpoint with 0 B of images now: 1 failed one, of which the newest "
            "10 of each job stay");
}

TEST(SpaceBoundTest, TheNewestOfAJobNeverGoesHoweverLarge) {
  const std::vector<store::Checkpoint> all = {kept("1", "a", 10), kept("2", "b", 10),
                                              kept("3", "b", 10)};
  EXPECT_EQ(gone(all, {1, 1}), "2");
}

TEST(SpaceBoundTest, TheCountIsThatOfEachJob) {
  const std::vector<store::Checkpoint> all = {kept("1", "a", 1), kept("2", "b", 1),
                                              kept("3", "a", 1), kept("4", "a", 1)};
  EXPECT_EQ(gone(all, {0, 2}), "1");
  EXPECT_EQ(gone(all, {0, 1}), "1 3");
}

TEST(SpaceBoundTest, OnlyWholeOnesBelowTheStateDirectoryGoOrCount) {
  store::Checkpoint failed = kept("f", "a", 100);
  failed.state = store::CheckpointState::failed;
  store::Checkpoint started = kept("s", "a", 100);
  started.state = store::CheckpointState::started;
  const std::vector<store::Checkpoint> all = {failed,
                                              started,
                                              kept("1", "a", 100, "/home/1"),
                                              kept("2", "a", 100, "/s/checkpoints/../2"),
                                              kept("3", "a", 10),
                                              kept("4", "a", 10)};
  EXPECT_EQ(gone(all, {20, 2}), "");
  EXPECT_EQ(gone(all, {19, 0}), "3");
}

TEST(SpaceBoundTest, FailedOnesGoTooTheOldestFirst) {
  std::vector<store::Checkpoint> all;
  for (const char* id : {"1", "2", "3", "4"}) {
    all.push_back(kept(id, std::string(id) == "2" ? "b" : "a", 0));
    all.back().state = store::CheckpointState::failed;
  }
  all.push_back(kept("f", "a", 0, "/home/f"));
  all.back().state = store::CheckpointState::failed;
  all.push_back(kept("5", "a", 10));
  EXPECT_EQ(gone(all, {}), "");
  EXPECT_EQ(gone(all, {0, 2}), "1");
  EXPECT_EQ(gone(all, {0, 1}), "1 3");
  EXPECT_EQ(gone(all, {1, 0}), "")
      << "if only the bytes are limited, ten failed checkpoints of a job are kept";
}

TEST(SpaceBoundTest, FailedOnesGoAlsoWithoutABound) {
  std::vector<store::Checkpoint> all;
  for (int n = 1; n <= 12; ++n) {
    all.push_back(kept(std::to_string(n), "a", 0));
    all.push_back(kept("p" + std::to_string(n), "", 0));
    all.back().pid = n;
  }
  for (store::Checkpoint& one : all) one.state = store::CheckpointState::failed;
  all.push_back(kept("whole", "a", 10));
  all.push_back(kept("newer", "a", 10));
  EXPECT_EQ(gone(all, {}), "1 p1 2 p2");
}

TEST(SpaceBoundTest, TheNewestMayLieElsewhereAndThenAllBelowMayGo) {
  const std::vector<store::Checkpoint> all = {kept("1", "a", 10), kept("2", "a", 10),
                                              kept("3", "a", 10, "/home/3")};
  EXPECT_EQ(gone(all, {1, 0}), "1 2");
  EXPECT_EQ(gone(all, {0, 1}), "1") << "a count leaves as many below, whatever lies elsewhere";
  // make_room() leaves out a checkpoint whose images are gone.
  EXPECT_EQ(gone({all[0], all[1]}, {1, 0}), "1");
}

// Another process got the pid of one that was dumped, and its checkpoint removed the only one of the first.
TEST(SpaceBoundTest, ProcessesThatAreNoJobsAreToldApartAlsoIfTheyHadTheSamePid) {
  std::vector<store::Checkpoint> all;
  const auto add = [&](pid_t pid, std::uint64_t start_ticks, const std::string& boot_id) {
    all.push_back(kept(std::to_string(all.size() + 1), "", 10));
    all.back().pid = pid;
    all.back().start_ticks = start_ticks;
    all.back().boot_id = boot_id;
  };
  add(7, 100, "one");
  add(8, 100, "one");
  add(8, 100, "one");
  add(8, 200, "one");
  add(8, 200, "two");
  EXPECT_EQ(gone(all, {0, 1}), "2");
  EXPECT_EQ(gone(all, {1, 0}), "2");
}

// An earlier version stored only the pid.
TEST(SpaceBoundTest, OneOfWhoseProcessOnlyThePidIsKnownStays) {
  std::vector<store::Checkpoint> all = {kept("1", "", 10), kept("2", "", 10)};
  all[0].pid = all[1].pid = 7;
  all[1].start_ticks = 100;
  EXPECT_EQ(gone(all, {0, 1}), "");
}

}  // namespace
}  // namespace kymo::daemon
