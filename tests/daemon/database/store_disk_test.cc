// A disk that is full, fails or stalls, and a database that another program locks.

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "daemon/database/store.h"
#include "store_fixture.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::store {
namespace {

TEST_F(StoreTest, WhatAFullDiskHasNoRoomForIsSeenAtOnceAndStoredLater) {
  const std::string disk = folder_.folder("disk");
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no right to mount";
  }
  {
    const std::unique_ptr<Store> store = Store::open(disk + "/kymo.db").value();
    Job job = make_job("a");
    Checkpoint checkpoint = make_checkpoint("c", "a");
    ASSERT_TRUE(store->add_job(job).ok());
    ASSERT_TRUE(store->add_checkpoint(checkpoint).ok());
    std::ofstream(disk + "/filling") << std::string(4 << 20, 'x');
    job.state = JobState::dumped;
    // Too large for the free space inside of the database.
    job.command = {std::string(20'000, 'y')};
    checkpoint.state = CheckpointState::complete;
    checkpoint.stats_json = std::string(20'000, 'z');
    store::Run run;
    run.id = "r";
    run.owner = "a";
    EXPECT_TRUE(store->update_checkpoint(checkpoint, &job, &run).ok());
    EXPECT_EQ(store->unstored(), 3U);
    EXPECT_EQ(store->job("a")->state, JobState::dumped);
    EXPECT_EQ(store->jobs().front().state, JobState::dumped);
    EXPECT_EQ(store->checkpoint("c")->state, CheckpointState::complete);
    EXPECT_EQ(store->checkpoints("a").front().stats_json, checkpoint.stats_json);
    EXPECT_EQ(store->runs("a", RunKind::dump)->size(), 1U);
    job.state = JobState::running;
    EXPECT_TRUE(store->update_job(job).ok());
    EXPECT_EQ(store->unstored(), 3U) << "the newer state of the job must replace the older one";
    std::filesystem::remove(disk + "/filling");
    EXPECT_EQ(store->unstored(), 0U);
  }
  {
    const std::unique_ptr<Store> again = Store::open(disk + "/kymo.db").value();
    EXPECT_EQ(again->job("a")->state, JobState::running);
    EXPECT_EQ(again->checkpoint("c")->state, CheckpointState::complete);
    EXPECT_EQ(again->runs("a", RunKind::dump)->size(), 1U);
  }
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_F(StoreTest, WhileAnotherProgramLocksItOnlyTheFirstChangeWaits) {
  Job job = make_job("a");
  ASSERT_TRUE(store_->add_job(job).ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  for (int i = 0; i < 1000; ++i) {  // if each change waited, the test would take too long
    job.exit_status = i;
    EXPECT_TRUE(store_->update_job(job).ok());
  }
  EXPECT_EQ(store_->unstored(), 1U);
  EXPECT_NE(store_->trouble().find("locked"), std::string::npos) << store_->trouble();
  sqlite3_close(other);
  EXPECT_EQ(store_->unstored(), 0U);
  reopen();
  EXPECT_EQ(store_->job("a")->exit_status, 999);
}

// A store with the job "a". Its disk works at first.
class StoreOnAMoodyDiskTest : public StoreTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    StoreTest::SetUp();
    ASSERT_TRUE(store_->add_job(job_).ok());
  }
  void TearDown() override {
    disk_.be("well");
    store_.reset();  // closed while its disk still exists
  }
  [[nodiscard]] std::string path() const override { return disk_.path() + "/kymo.db"; }

  const test::MoodyDisk disk_{folder_};
  Job job_ = make_job("a");
};

// How the disk fails: with EIO, EDQUOT or EROFS.
class StoreOnADiskThatFailsTest : public StoreOnAMoodyDiskTest,
                                  public testing::WithParamInterface<const char*> {};

TEST_P(StoreOnADiskThatFailsTest, WhatItDoesNotTakeIsSeenAtOnceAndStoredLater) {
  disk_.be(GetParam());
  job_.state = JobState::dumped;
  EXPECT_TRUE(store_->update_job(job_).ok());
  EXPECT_EQ(store_->job("a")->state, JobState::dumped);
  EXPECT_EQ(store_->unstored(), 1U);
  EXPECT_NE(store_->trouble().find(path() + ": disk I/O error"), std::string::npos)
      << store_->trouble();
  EXPECT_FALSE(store_->add_job(make_job("b")).ok());
  disk_.be("well");
  EXPECT_TRUE(test::eventually([&] { return store_->unstored() == 0; })) << store_->trouble();
  reopen();
  EXPECT_EQ(store_->job("a")->state, JobState::dumped);
  EXPECT_EQ(store_->jobs().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Moods, StoreOnADiskThatFailsTest,
                         testing::Values("fails", "is-over-quota", "is-read-only"),
                         [](const testing::TestParamInfo<const char*>& mood) {
                           const std::string name = mood.param;
                           return name == "fails"           ? "WithEIO"
                                  : name == "is-over-quota" ? "WithEDQUOT"
                                                            : "WithEROFS";
                         });

TEST_F(StoreOnAMoodyDiskTest, WhatItDoesNotTakeInTimeWhenItStallsIsRefusedAndNotDoneLater) {
  disk_.be("stalls");
  const Result<void> late = store_->add_job(make_job("b"));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message, "the disk of the database " + path() + " does not answer");
  for (int i = 0; i < 1000; ++i) {  // if each change waited, the test would take too long
    EXPECT_FALSE(store_->add_job(make_job("c")).ok());
    job_.exit_status = i;
    EXPECT_TRUE(store_->update_job(job_).ok());
  }
  EXPECT_EQ(store_->unstored(), 1U);
  EXPECT_EQ(store_->trouble(), late.error().message);
  disk_.be("well");
  EXPECT_TRUE(test::eventually([&] { return store_->unstored() == 0; })) << store_->trouble();
  reopen();
  ASSERT_EQ(store_->jobs().size(), 1U) << "a change that was refused must not be made later";
  EXPECT_EQ(store_->job("a")->exit_status, 999);
}

TEST_F(StoreOnAMoodyDiskTest, ADeletionThatItDoesNotTakeInTimeIsNotDoneLater) {
  Checkpoint checkpoint = make_checkpoint("c", "a");
  ASSERT_TRUE(store_->add_checkpoint(checkpoint).ok());
  const CheckpointState before = checkpoint.state;
  checkpoint.state = CheckpointState::deleting;
  disk_.be("stalls");
  EXPECT_EQ(store_->announce(checkpoint).error().code, Code::unavailable);
  EXPECT_EQ(store_->checkpoint("c")->state, before);
  EXPECT_EQ(store_->remove_job("a").error().code, Code::unavailable);
  disk_.be("well");
  EXPECT_TRUE(test::eventually([&] { return store_->add_job(make_job("b")).ok(); }));
  reopen();
  EXPECT_EQ(store_->checkpoint("c")->state, before);
  EXPECT_TRUE(store_->job("a").ok());
  disk_.be("fails");
  EXPECT_TRUE(store_->announce(checkpoint).ok()) << "a deletion may make room on a full disk";
}

TEST_F(StoreOnAMoodyDiskTest, IsClosedWhileItStalls) {
  disk_.be("stalls");
  store_->note_job(job_);
  store_.reset();
  disk_.be("well");
}

TEST_F(StoreOnAMoodyDiskTest, WhileItStallsWhatIsReadAndNotedDoesNotWait) {
  ASSERT_TRUE(store_->add_checkpoint(make_checkpoint("c", "a")).ok());
  disk_.be("stalls");
  job_.state = JobState::exited;
  job_.exit_status = 3 << 8;
  store_->note_job(job_);  // now the thread that stores it waits for the disk
  EXPECT_EQ(store_->jobs().size(), 1U);
  EXPECT_EQ(store_->checkpoints("a").size(), 1U);
  EXPECT_EQ(store_->job("name-a")->state, JobState::exited);
  EXPECT_TRUE(store_->checkpoint("c").ok());
  EXPECT_EQ(store_->unstored(), 1U) << "the change is being stored, but is not on the disk yet";
  disk_.be("well");
  reopen();
  EXPECT_EQ(store_->job("a")->exit_status, 3 << 8);
}

}  // namespace
}  // namespace kymo::store
