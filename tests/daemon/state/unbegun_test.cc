#include "daemon/state/unbegun.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cut_short_fixture.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

class Unbegun : public CutShort {};

TEST_F(Unbegun, AJobWhosePidWasNotStoredIsFoundByItsOutput) {
  start_job(false);
  ASSERT_TRUE(settle_unstarted_jobs(*store_).ok());
  EXPECT_EQ(store_->job("work")->pid, pid_);
  EXPECT_EQ(store_->job("work")->start_ticks, probe::read_process(pid_)->start_ticks);
}

TEST_F(Unbegun, AJobThatNeverStartedIsForgotten) {
  start_job(false);
  end_process();
  ASSERT_TRUE(settle_unstarted_jobs(*store_).ok());
  EXPECT_EQ(store_->job("work").error().code, Code::not_found);
}

TEST_F(Unbegun, AFolderOfADumpThatHadNotBegunIsRemovedAndNoOther) {
  const std::string checkpoints = folder_.folder("checkpoints");
  const auto made = [&](const std::string& name) {
    CheckpointDir dir(checkpoints + "/" + name);
    EXPECT_TRUE(create_checkpoint_dir(dir).ok());
    return dir;
  };
  const CheckpointDir empty = made("empty");
  static_cast<void>(folder_.file("checkpoints/empty/recordings/dump.tsv", "Time (ns)\n"));
  ASSERT_EQ(mkdir((checkpoints + "/bare").c_str(), 0700), 0);
  const CheckpointDir begun = made("begun");
  static_cast<void>(folder_.file("checkpoints/begun/images.partial/pages-1.img", "x"));
  const CheckpointDir whole = made("whole");
  ASSERT_TRUE(publish_images(whole).ok());
  const CheckpointDir recorded = made("recorded");
  ASSERT_TRUE(write_record(recorded, nlohmann::json::object()).ok());
  // Files of users: a folder of checkpoints, the images of another CRIU, an archive.
  ASSERT_EQ(mkdir((checkpoints + "/group").c_str(), 0700), 0);
  const CheckpointDir in_group = made("group/inner");
  static_cast<void>(folder_.folder("checkpoints/mine"));
  static_cast<void>(folder_.file("checkpoints/mine/inventory.img", "x"));
  dir_ = CheckpointDir(checkpoints + "/listed");
  begin_dump({});
  ASSERT_TRUE(remove_unlisted_folders(*store_, folder_.path()).ok());
  EXPECT_FALSE(fs::exists(empty.path()));
  EXPECT_FALSE(fs::exists(checkpoints + "/bare"));
  EXPECT_TRUE(fs::exists(checkpoints + "/mine/inventory.img"));
  for (const CheckpointDir& kept : {begun, whole, recorded, in_group, dir_}) {
    EXPECT_TRUE(fs::exists(kept.path())) << kept.path();
  }
}

}  // namespace
}  // namespace kymo::daemon
