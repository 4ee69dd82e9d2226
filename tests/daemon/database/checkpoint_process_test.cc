// Which process a checkpoint and a job are of, and which one is the newest.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "daemon/database/store.h"
#include "support/temporary_directory.h"

namespace kymo::store {
namespace {

TEST(CheckpointProcessTest, IsStoredWithItsCheckpointAndNeverChanges) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/kymo.db";
  Checkpoint checkpoint;
  checkpoint.id = "c";
  checkpoint.pid = 7;
  checkpoint.start_ticks = 100;
  checkpoint.boot_id = "boot";
  {
    const std::unique_ptr<Store> store = Store::open(path).value();
    ASSERT_TRUE(store->add_checkpoint(checkpoint).ok());
    checkpoint.state = CheckpointState::complete;
    checkpoint.start_ticks = 0;
    checkpoint.boot_id.clear();
    ASSERT_TRUE(store->update_checkpoint(checkpoint).ok());
    EXPECT_EQ(store->checkpoint("c")->start_ticks, 100U);
  }
  const std::unique_ptr<Store> again = Store::open(path).value();
  const Checkpoint stored = again->checkpoint("c").value();
  EXPECT_EQ(stored.state, CheckpointState::complete);
  EXPECT_EQ(stored.pid, 7);
  EXPECT_EQ(stored.start_ticks, 100U);
  EXPECT_EQ(stored.boot_id, "boot");
}

TEST(JobProcessTest, TheBootOfAJobsProcessIsStoredAndChangesWithTheProcess) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/kymo.db";
  Job job;
  job.id = job.name = "web";
  job.boot_id = "one";
  {
    const std::unique_ptr<Store> store = Store::open(path).value();
    ASSERT_TRUE(store->add_job(job).ok());
  }
  {
    const std::unique_ptr<Store> store = Store::open(path).value();
    EXPECT_EQ(store->job("web")->boot_id, "one");
    job.boot_id = "two";
    ASSERT_TRUE(store->update_job(job).ok());
  }
  EXPECT_EQ(Store::open(path).value()->job("web")->boot_id, "two");
}

// The clock was set back by an hour, and the newest checkpoint of a job counted as the oldest: --keep-count removed it.
TEST(CheckpointProcessTest, TheNewestIsTheLastOneThatWasAddedWhateverTheClockSaid) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/kymo.db";
  const auto order = [](Store& store) {
    std::string ids;
    for (const Checkpoint& one : store.checkpoints()) ids += one.id;
    return ids;
  };
  {
    const std::unique_ptr<Store> store = Store::open(path).value();
    for (const auto& [id, created] :
         {std::pair("a", 300), std::pair("b", 100), std::pair("c", 200)}) {
      Checkpoint checkpoint;
      checkpoint.id = id;
      checkpoint.created_unix_ns = created;
      ASSERT_TRUE(store->add_checkpoint(checkpoint).ok());
    }
    EXPECT_EQ(order(*store), "abc");
  }
  EXPECT_EQ(order(*Store::open(path).value()), "abc");
}

}  // namespace
}  // namespace kymo::store
