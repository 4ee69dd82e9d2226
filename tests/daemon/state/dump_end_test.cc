// What is found out about a dump that is over, and what is done then. The table of what follows has its own test.
#include "daemon/state/dump_end.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "cut_short_fixture.h"
#include "lens/report/checkpoint_record.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using Process = DumpEvidence::Process;
using Images = DumpEvidence::Images;

// A dump whose request is still here, on a disk that may not answer.
class DumpEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    ASSERT_TRUE(create_checkpoint_dir(dump_.dir).ok());
    dump_.spec.held =
        criu::HeldImages::hold(dump_.dir.partial_images(), dump_.dir.images()).value();
    dump_.spec.images_dir = dump_.dir.partial_images();
    dump_.spec.work_dir = dump_.dir.work();
    dump_.text = "the process";
    dump_.process = Process::ended;
    dump_.failed = true;
    auto opened = store::Store::open(folder_.path() + "/kymo.db");
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
    checkpoint_.id = "c1";
    checkpoint_.directory = dump_.dir.path();
    ASSERT_TRUE(store_->add_checkpoint(checkpoint_).ok());
  }
  void TearDown() override {
    disk_.go_on();
    disk_.be("well");
  }
  void write(const std::string& image) {
    std::ofstream(dump_.dir.partial_images() + "/" + image) << "12345678";
    dump_.spec.held->wrote(image, 0, 8);
  }
  [[nodiscard]] bool has(const std::string& image) const {
    return fs::exists(dump_.dir.partial_images() + "/" + image);
  }
  void read_images_by(confine::Work look) {
    confine::WorkByName works = foreign_readers();
    works.at("look at images") = look;
    helper_ = confine::Helper::start(std::move(works)).value();
  }
  SettledDump settle_it() {
    AskedDisk disk(nullptr);
    return settle(dump_, ForeignFiles(*helper_), disk);
  }
  // Returns the state that the store has then.
  store::CheckpointState carry_it_out(SettledDump settled) {
    AskedDisk disk(nullptr);
    EXPECT_TRUE(carry_out(
                    *store_, dump_, settled, checkpoint_,
                    [] {
                      return nlohmann::json{{"state", "as it is"}};
                    },
                    false, std::nullopt, disk)
                    .ok());
    return store_->checkpoint("c1")->state;
  }

  test::TemporaryDirectory folder_;
  test::MoodyDisk disk_{folder_};
  EndedDump dump_{.dir = CheckpointDir(disk_.path() + "/c")};
  std::unique_ptr<store::Store> store_;
  store::Checkpoint checkpoint_;
  std::unique_ptr<confine::Helper> helper_ = confine::Helper::start(foreign_readers()).value();
};

TEST_F(DumpEnd, ImagesOfAProcessThatRunsAreRemoved) {
  write("pages-1.img");
  write("inventory.img");
  dump_.process = Process::runs;
  EXPECT_EQ(carry_it_out(settle_it()), store::CheckpointState::failed);
  EXPECT_FALSE(fs::exists(dump_.dir.partial_images()));
  EXPECT_EQ(report::read_checkpoint_record(dump_.dir.path())->at("state"), "as it is");
}

TEST_F(DumpEnd, WholeImagesOfAProcessThatHasEndedAreTheCheckpoint) {
  write("pages-1.img");
  write("inventory.img");
  read_images_by(find_no_fault);
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::published);
  EXPECT_EQ(settled.images.size(), 2U) << settled.images;
  EXPECT_TRUE(fs::exists(dump_.dir.images() + "/pages-1.img"));
  EXPECT_EQ(carry_it_out(settled), store::CheckpointState::complete);
}

TEST_F(DumpEnd, ImagesThatAFailedDumpHasLeftAreVerified) {
  write("inventory.img");
  read_images_by(find_a_fault);
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::damaged);
  EXPECT_EQ(told(dump_, settled),
            "its images are damaged: pages-1.img is too short; the process has ended, and kymod "
            "has removed nothing: look for its images in " +
                dump_.dir.partial_images());
  EXPECT_EQ(carry_it_out(settled), store::CheckpointState::failed);
  EXPECT_TRUE(has("inventory.img"));
}

TEST_F(DumpEnd, ImagesWithoutAnInventoryAreRemovedWhereTheProcessHasEnded) {
  write("pages-1.img");
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::partial);
  EXPECT_EQ(told(dump_, settled), "the process has ended, and its images were removed");
  EXPECT_EQ(carry_it_out(settled), store::CheckpointState::failed);
  EXPECT_FALSE(has("pages-1.img"));
}

TEST_F(DumpEnd, ARemovedInventoryIsAChangeByOthersAndTheRestIsKept) {
  write("pages-1.img");
  write("inventory.img");
  fs::remove(dump_.dir.partial_images() + "/inventory.img");
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::changed);
  EXPECT_EQ(carry_it_out(settled), store::CheckpointState::failed);
  EXPECT_TRUE(has("pages-1.img"));
}

TEST_F(DumpEnd, ImagesOnASilentDiskAreKeptWhereTheProcessHasEnded) {
  write("pages-1.img");
  write("inventory.img");
  disk_.stop();
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::unseen);
  EXPECT_NE(told(dump_, settled).find("it is not known yet whether they are whole"),
            std::string::npos);
  EXPECT_EQ(carry_it_out(settled), store::CheckpointState::unconfirmed);
  disk_.go_on();
  EXPECT_TRUE(has("inventory.img"));
  EXPECT_TRUE(has("pages-1.img"));
}

// If a disk is not mounted, its path shows the folder below it, which has no images.
TEST_F(DumpEnd, ImagesOfADiskThatIsGoneAreNotTakenForMissing) {
  dump_.spec.held.reset();
  dump_.dir = CheckpointDir(folder_.path() + "/elsewhere");
  EXPECT_EQ(settle_it().seen.images, Images::unseen);
}

// An image that takes long to copy is still copied when nobody waits for it any more.
TEST_F(DumpEnd, ImagesInMemoryFollowWhenTheirDiskAnswers) {
  dump_.spec.memory_images =
      runtime::choose_memory_images("test-" + std::to_string(::getpid()), 1, folder_.path())
          .value();
  ASSERT_TRUE(runtime::make_memory_images(dump_.spec.memory_images).ok());
  for (const char* const name : {"/pages-1.img", "/inventory.img"}) {
    std::ofstream(dump_.spec.memory_images + name) << "12345678";
  }
  read_images_by(find_no_fault);
  disk_.be("stalls-at-pages");
  const SettledDump settled = settle_it();
  EXPECT_EQ(settled.seen.images, Images::in_memory);
  EXPECT_NE(told(dump_, settled).find("whole images are in memory, in " + dump_.spec.memory_images),
            std::string::npos);
  EXPECT_TRUE(runtime::whole_in_memory(dump_.spec.memory_images));
  disk_.be("well");
  EXPECT_TRUE(test::eventually([&] { return has("inventory.img"); }));
  EXPECT_TRUE(
      test::eventually([&] { return !runtime::whole_in_memory(dump_.spec.memory_images); }));
  EXPECT_EQ(settle_it().seen.images, Images::published);
}

// Nothing was said.
TEST_F(DumpEnd, ALogThatStaysInMemoryIsNamed) {
  dump_.spec.scratch_dir = runtime::scratch_path("test-" + std::to_string(::getpid()));
  ASSERT_TRUE(runtime::make_scratch(dump_.spec.scratch_dir).ok());
  std::ofstream(dump_.spec.scratch_dir + "/dump.log") << std::string(100'000, 'x');
  dump_.spec.work_dir = folder_.folder("work");
  if (::mount("kymo", dump_.spec.work_dir.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs root to mount";
  }
  const SettledDump settled = settle_it();
  ASSERT_EQ(settled.warnings.size(), 1U);
  EXPECT_NE(settled.warnings[0].find(dump_.spec.scratch_dir), std::string::npos);
  EXPECT_EQ(::umount(dump_.spec.work_dir.c_str()), 0);
  fs::remove_all(dump_.spec.scratch_dir);
}

}  // namespace
}  // namespace kymo::daemon
