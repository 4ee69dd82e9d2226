// A store whose disk stalls or fails.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "store/store.h"
#include "store_parts.h"
#include "support/moody_disk.h"

namespace kymo::store {
namespace {

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

// Before the fix, a job that ran again stayed "dumped" for good, because a change was tried again
// only after a full disk.
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

// Before the fix, a dump with a deadline, a `run`, and the stop of kymod waited until the disk
// answered.
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

// Before the fix, a job or a checkpoint was deleted although its deletion had been refused.
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

// Before the fix, the program could not end before the disk answered.
TEST_F(StoreOnAMoodyDiskTest, IsClosedWhileItStalls) {
  disk_.be("stalls");
  store_->note_job(job_);
  store_.reset();
  disk_.be("well");
}

// Before the fix, `kymo ps` waited until the disk answered.
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
