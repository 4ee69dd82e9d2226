// Which process a checkpoint is of.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "store/store.h"
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

}  // namespace
}  // namespace kymo::store
