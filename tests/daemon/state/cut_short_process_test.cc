// Which process a dump was of that was cut short, and who else dumps it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/dump_lock.h"
#include "cut_short_fixture.h"
#include "daemon/state/cut_short.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// The start of kymod looked for a tracer of the process, and then repaired what a killed CRIU might have left, although
// another kymod had begun a dump of the process in between.
TEST_F(CutShort, NothingIsDoneWithAProcessThatAnotherKymodDumps) {
  start_job(true);
  begin_dump({"inventory.img"});
  {
    const Result<runtime::DumpLock> other = runtime::lock_for_dump({pid_, 0});
    ASSERT_TRUE(other.ok()) << other.error().message;
    const store::Checkpoint checkpoint = close();
    EXPECT_EQ(checkpoint.state, store::CheckpointState::unconfirmed);
    EXPECT_NE(checkpoint.error.find("is being dumped again"), std::string::npos)
        << checkpoint.error;
  }
  EXPECT_EQ(settled_.second.process.pid, 0) << "the runtime was asked to settle it";
  EXPECT_TRUE(fs::exists(dir_.partial_images() + "/inventory.img"));
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  EXPECT_EQ(settled_.second.process.pid, pid_);
}

TEST_F(CutShort, NobodyElseDumpsTheProcessWhileItIsSettled) {
  start_job(true);
  begin_dump({"pages-1.img"});
  bool locked = false;
  const SettleDump settle = [&](runtime::Kind, const runtime::DumpSpec& spec) {
    locked = !runtime::lock_for_dump(spec.process).ok();
    return Result<void>();
  };
  EXPECT_TRUE(
      close_cut_short_dump(*store_, ForeignFiles(*helper_), store_->checkpoint(id_).value(), settle)
          .ok());
  EXPECT_TRUE(locked);
  EXPECT_TRUE(runtime::lock_for_dump({pid_, 0}).ok()) << "the lock must not outlive the look";
}

// The process that runs here stands for one that got the same pid at the same time after the boot. The images, all that
// was left of the process that was dumped, were removed, because "process 12 runs on".
TEST_F(CutShort, AProcessOfAnEarlierBootIsGoneWhateverHasItsPidAndItsStartTime) {
  start_job(true);
  begun_.start_ticks = job_.start_ticks;
  begun_.boot_id = "of an earlier boot";
  begin_dump({"pages-1.img", "inventory.img"});
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
  EXPECT_EQ(settled_.second.process.pid, 0) << "it is another process";
}

// The disk had kept the new name of the images, and had lost their pages.
TEST_F(CutShort, PublishedImagesOfAnEarlierBootAreVerifiedToo) {
  start_job(true);
  begun_.boot_id = "of an earlier boot";
  begin_dump({"inventory.img"});
  ASSERT_TRUE(publish_images(dir_).ok());
  read_images_by(find_a_fault);
  end_process();
  const store::Checkpoint damaged = close();
  EXPECT_EQ(damaged.state, store::CheckpointState::failed);
  EXPECT_NE(damaged.error.find("pages-1.img is too short"), std::string::npos) << damaged.error;
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
}

}  // namespace
}  // namespace kymo::daemon
