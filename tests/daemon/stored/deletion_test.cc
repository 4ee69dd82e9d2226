#include "daemon/stored/deletion.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/directory_claim.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

class DeletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::Store::open(folder_.path() + "/kymo.db");
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
  }

  DeletionParts parts() { return {*store_, claims_, state_, foreign_}; }

  // Makes a complete checkpoint, as a dump leaves it.
  store::Checkpoint make(const std::string& directory, const std::string& id = "c1") {
    const CheckpointDir dir(directory);
    EXPECT_TRUE(create_checkpoint_dir(dir).ok());
    EXPECT_TRUE(publish_images(dir).ok());
    EXPECT_TRUE(replace_file(dir.images() + "/inventory.img", "12345678").ok());
    EXPECT_TRUE(replace_file(dir.recordings() + "/dump.tsv", "Time (ns)\n").ok());
    store::Checkpoint checkpoint;
    checkpoint.id = id;
    checkpoint.directory = directory;
    checkpoint.created_unix_ns = 42;
    checkpoint.state = store::CheckpointState::complete;
    EXPECT_TRUE(write_record(dir, {{"state", "complete"}, {"created_unix_ns", 42}}).ok());
    EXPECT_TRUE(store_->add_checkpoint(checkpoint).ok());
    return checkpoint;
  }
  Result<bool> remove(const store::Checkpoint& checkpoint) {
    warnings_.clear();
    return delete_checkpoint(parts(), checkpoint, warnings_);
  }

  test::TemporaryDirectory folder_;
  const std::string state_ = folder_.path() + "/state";
  const std::unique_ptr<confine::Helper> helper_ =
      confine::Helper::start(foreign_readers()).value();
  const ForeignFiles foreign_{*helper_};
  std::unique_ptr<store::Store> store_;
  Claims<std::string> claims_;
  std::vector<std::string> warnings_;
};

TEST_F(DeletionTest, WhatIsStillInMemoryGoesWithItsCheckpoint) {
  if (runtime::scratch_bases().empty()) GTEST_SKIP() << "needs a memory file system";
  const std::string id = "deletion-test-" + std::to_string(getpid());
  const std::string scratch = runtime::scratch_path(id);
  const store::Checkpoint checkpoint = make(folder_.path() + "/c", id);
  ASSERT_TRUE(runtime::make_scratch(scratch).ok());
  ASSERT_TRUE(replace_file(scratch + "/dump.log", "12345678").ok());
  const Result<bool> deleted = remove(checkpoint);
  ASSERT_TRUE(deleted.ok()) << deleted.error().message;
  EXPECT_FALSE(fs::exists(scratch));
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
}

// The owner of the folder could replace a checkpoint by a link to another one.
TEST_F(DeletionTest, NothingIsDeletedWhereAnotherUserCouldLeadIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const std::string theirs = folder_.folder("theirs");
  const store::Checkpoint checkpoint = make(theirs + "/c");
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  const Result<bool> deleted = remove(checkpoint);
  ASSERT_FALSE(deleted.ok());
  EXPECT_NE(deleted.error().message.find(theirs + ": it belongs to uid 65534"), std::string::npos)
      << deleted.error().message;
  EXPECT_TRUE(fs::exists(theirs + "/c/images/inventory.img"));
  EXPECT_TRUE(store_->checkpoint("c1").ok())
      << "kymod's list must keep the checkpoint, because nothing else lists its images";
}

TEST_F(DeletionTest, ACheckpointWithADamagedRecordStaysInTheList) {
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  const std::string record = CheckpointDir(checkpoint.directory).record();
  const auto refused = [&] {
    const Result<bool> deleted = remove(checkpoint);
    ASSERT_FALSE(deleted.ok());
    EXPECT_NE(deleted.error().message.find("nothing was removed from " + checkpoint.directory),
              std::string::npos)
        << deleted.error().message;
    EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
    EXPECT_EQ(store_->checkpoint("c1")->state, store::CheckpointState::complete);
  };
  ASSERT_TRUE(replace_file(record, "{\"state\": ").ok());
  refused();
  fs::remove(record);
  refused();
  fs::remove_all(checkpoint.directory + "/images");
  EXPECT_FALSE(remove(checkpoint).value()) << "nothing of the checkpoint is left";
}

// The next dump had taken its directory, and the deletion of the old one removed the new one.
TEST_F(DeletionTest, WhatTookThePlaceOfAMovedCheckpointStays) {
  const std::string directory = state_ + "/checkpoints/w-1";
  fs::create_directories(state_ + "/checkpoints");
  store::Checkpoint moved = make(directory);
  fs::remove_all(directory);
  store::Checkpoint later = make(directory, "c2");
  later.created_unix_ns = 43;
  ASSERT_TRUE(
      write_record(CheckpointDir(directory), {{"state", "complete"}, {"created_unix_ns", 43}})
          .ok());
  EXPECT_FALSE(remove(moved).value());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("no longer holds this checkpoint"), std::string::npos)
      << warnings_[0];
  EXPECT_TRUE(fs::exists(directory + "/images/inventory.img"));
  EXPECT_FALSE(store_->checkpoint("c1").ok());
  EXPECT_TRUE(remove(later).value());
  EXPECT_FALSE(fs::exists(directory));
}

// On FUSE and NFS, a file that is removed while it is open keeps a hidden name in its folder.
TEST_F(DeletionTest, ARecordingThatIsStillBeingClosedIsWaitedFor) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const store::Checkpoint checkpoint = make(disk.path() + "/c");
  FileDescriptor recording(
      ::open((checkpoint.directory + "/recordings/dump.tsv").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(recording.valid());
  const std::jthread closer([&] {  // waits until FUSE has given the removed file a hidden name
    EXPECT_TRUE(test::eventually([&] {
      std::error_code gone;
      const fs::directory_iterator hidden(checkpoint.directory + "/recordings", gone);
      return hidden != fs::directory_iterator() &&
             hidden->path().filename().string().starts_with(".fuse_hidden");
    }));
    recording.reset();
  });
  ASSERT_TRUE(remove(checkpoint).ok());
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  EXPECT_FALSE(fs::exists(checkpoint.directory));
}

// A recording is closed, and its hidden name disappears, while its folder is being emptied: the deletion sees the name, but
// cannot remove it any more.
TEST_F(DeletionTest, ARecordingThatIsClosedMeanwhileIsNoTrouble) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const store::Checkpoint checkpoint = make(disk.path() + "/c");
  disk.be("lists-a-removed-file");
  ASSERT_TRUE(remove(checkpoint).ok());
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  EXPECT_FALSE(fs::exists(checkpoint.directory));
}

TEST_F(DeletionTest, NothingIsLeftOfACheckpoint) {
  for (const std::string& directory : {state_ + "/checkpoints/web-1", folder_.path() + "/mine"}) {
    const store::Checkpoint checkpoint = make(directory);
    EXPECT_TRUE(remove(checkpoint).value());
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_EQ(store_->checkpoint("c1").error().code, Code::not_found);
  }
}

// A CRIU that was killed in a restore leaves the machine's cgroups mounted there: they would have been emptied.
TEST_F(DeletionTest, WhatIsMountedInItsWorkFolderStaysAsItIs) {
  const std::string mounted = folder_.folder("cgroups");
  const std::string precious = folder_.file("cgroups/precious", "x");
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  const std::string point = CheckpointDir(checkpoint.directory).work() + "/.criu.cgyard.1";
  fs::create_directory(point);
  if (mount(mounted.c_str(), point.c_str(), "", MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "needs root to mount";
  }
  ASSERT_TRUE(remove(checkpoint).ok());
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  EXPECT_TRUE(fs::exists(precious));
  EXPECT_FALSE(fs::exists(checkpoint.directory));
}

TEST_F(DeletionTest, ACheckpointInUseIsRefusedAndStaysWhole) {
  const store::Checkpoint checkpoint = make(state_ + "/checkpoints/web-1");
  for (const char* used : {"", "/images", "/images.partial"}) {
    const auto claim = claims_.claim("directory:" + checkpoint.directory + used);
    const Result<bool> refused = remove(checkpoint);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::failed_precondition);
    EXPECT_NE(refused.error().message.find("a dump or restore uses"), std::string::npos);
  }
  {
    const DirectoryClaim open_restore(claims_, {checkpoint.directory},
                                      DirectoryClaim::SilentDisk::wait,
                                      DirectoryClaim::Use::deletion);
    EXPECT_FALSE(remove(checkpoint).ok());
  }
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
  EXPECT_EQ(store_->checkpoint("c1")->state, store::CheckpointState::complete);
}

TEST_F(DeletionTest, ACheckpointThatIsUsedThroughALinkIsRefusedAndStaysWhole) {
  const std::string link = folder_.path() + "/link";
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  fs::create_directory_symlink(checkpoint.directory, link);
  for (const char* used : {"", "/images", "/images.partial"}) {
    const DirectoryClaim restore(claims_, {link + used});
    const Result<bool> refused = remove(checkpoint);
    ASSERT_FALSE(refused.ok()) << used;
    EXPECT_EQ(refused.error().code, Code::failed_precondition);
  }
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
  // Now its dump had been made through the link.
  store::Checkpoint linked = checkpoint;
  linked.directory = link;
  const DirectoryClaim restore(claims_, {checkpoint.directory});
  EXPECT_FALSE(remove(linked).ok());
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
}

TEST_F(DeletionTest, WhatAUserPutThereStays) {
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  ASSERT_TRUE(replace_file(checkpoint.directory + "/notes.txt", "mine").ok());
  ASSERT_TRUE(remove(checkpoint).ok());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("holds other files and was not deleted"), std::string::npos);
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/notes.txt"));
  EXPECT_FALSE(fs::exists(checkpoint.directory + "/images"));
  EXPECT_EQ(store_->checkpoint("c1").error().code, Code::not_found);
}

TEST_F(DeletionTest, AnotherCheckpointInTheSameDirectoryIsLeftAlone) {
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  // The user moved the checkpoint away and put another one in its place.
  ASSERT_TRUE(write_record(CheckpointDir(checkpoint.directory), {{"created_unix_ns", 43}}).ok());
  EXPECT_FALSE(remove(checkpoint).value()) << "it must only leave the list";
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("no longer holds this checkpoint"), std::string::npos);
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
  EXPECT_EQ(store_->checkpoint("c1").error().code, Code::not_found);
}

// The reader's answer is about another checkpoint than the file, so the test sees which one is used.
TEST_F(DeletionTest, WhatAUsersDirectoryHoldsIsReadByAProcessWithoutRights) {
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  const auto helper =
      confine::Helper::start(
          {{"read a record",
            [](const std::string&) { return Result<std::string>(R"({"created_unix_ns":43})"); }}})
          .value();
  const ForeignFiles foreign(*helper);
  ASSERT_TRUE(delete_checkpoint({*store_, claims_, state_, foreign}, checkpoint, warnings_).ok());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("no longer holds this checkpoint"), std::string::npos);
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
}

TEST_F(DeletionTest, ACheckpointWhoseDirectoryIsGoneIsForgotten) {
  for (const std::string& directory : {state_ + "/checkpoints/web-1", folder_.path() + "/mine"}) {
    const store::Checkpoint checkpoint = make(directory);
    fs::remove_all(checkpoint.directory);
    EXPECT_FALSE(remove(checkpoint).value());
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    EXPECT_EQ(store_->checkpoint("c1").error().code, Code::not_found);
  }
}

TEST_F(DeletionTest, AKilledDaemonsDeletionIsBroughtToAnEndFromWhereverItWas) {
  for (const bool images_gone : {false, true}) {
    for (const bool record_gone : {false, true}) {
      store::Checkpoint checkpoint = make(folder_.path() + "/mine");
      const CheckpointDir dir(checkpoint.directory);
      checkpoint.state = store::CheckpointState::deleting;
      ASSERT_TRUE(store_->update_checkpoint(checkpoint).ok());
      if (images_gone) fs::rename(dir.images(), dir.deleted_images());
      if (record_gone) fs::remove(dir.record());
      ASSERT_TRUE(finish_deletions(parts()).ok());
      EXPECT_FALSE(fs::exists(dir.path()));
      EXPECT_TRUE(store_->checkpoints().empty());
    }
  }
}

// The images were removed and the answer was that the disk of the database does not answer. A kymod that was killed then
// left a checkpoint that was listed as complete.
class DeletionOnAStalledStore : public DeletionTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.mounted()) << "FUSE does not work here";
    store_ = store::Store::open(disk_.path() + "/kymo.db").value();
  }
  void TearDown() override {
    disk_.be("well");
    store_.reset();  // before its disk goes
  }
  const test::MoodyDisk disk_{folder_};
};

TEST_F(DeletionOnAStalledStore, NothingIsDeleted) {
  const store::Checkpoint checkpoint = make(folder_.path() + "/mine");
  disk_.be("stalls");
  const Result<bool> refused = remove(checkpoint);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_NE(refused.error().message.find("nothing was deleted"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(fs::exists(checkpoint.directory + "/images/inventory.img"));
  EXPECT_EQ(store_->checkpoint("c1")->state, store::CheckpointState::complete);
  disk_.be("well");
  EXPECT_TRUE(test::eventually([&] { return remove(checkpoint).ok(); }));
  EXPECT_FALSE(fs::exists(checkpoint.directory));
}

TEST_F(DeletionTest, OnlyDirectoriesThatKymodChoseAreBelowTheStateDirectory) {
  EXPECT_TRUE(below_state_dir("/s", "/s/checkpoints/web-1"));
  EXPECT_FALSE(below_state_dir("/s", "/s/checkpoints/"));
  EXPECT_FALSE(below_state_dir("/s", "/s/checkpoints/web-1/images"));
  EXPECT_FALSE(below_state_dir("/s", "/s/checkpoints-of-mine/web-1"));
  EXPECT_FALSE(below_state_dir("/s", "/home/web-1"));
}

}  // namespace
}  // namespace kymo::daemon
