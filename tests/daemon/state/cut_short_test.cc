// What a killed kymod leaves unfinished, and what the next kymod does with it. The processes are real.
#include "daemon/state/cut_short.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/launch.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "cut_short_fixture.h"
#include "daemon/state/checkpoint_dir.h"
#include "lens/report/checkpoint_record.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_F(CutShort, HalfImagesOfAProcessThatRunsAreRemoved) {
  start_job(true);
  begin_dump({"pages-1.img"});
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  EXPECT_FALSE(fs::exists(dir_.partial_images()));
  EXPECT_EQ(report::read_checkpoint_record(dir_.path())->at("state"), "failed");
  EXPECT_EQ(store_->job("work")->state, store::JobState::running);
}

TEST_F(CutShort, ALostDumpIsInTheHistoryOfItsJob) {
  start_job(true);
  begin_dump({"pages-1.img"});
  const store::Checkpoint checkpoint = close();
  const auto runs = store_->runs("job:work", store::RunKind::dump);
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().checkpoint_id, id_);
  EXPECT_EQ(runs->front().error, checkpoint.error);
  EXPECT_EQ(runs->front().warmth, "");
  EXPECT_EQ(report::read_checkpoint_record(dir_.path())->at("failure").at("id"), "kymod-ended");
}

TEST_F(CutShort, ADumpThatIsCompleteAfterAllIsInTheHistory) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  end_process();
  read_images_by(find_no_fault);
  close();
  const auto runs = store_->runs("job:work", store::RunKind::dump);
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().error, "");
  EXPECT_EQ(runs->front().image_bytes, 16U);
  EXPECT_NE(runs->front().conditions, "") << "no other dump is compared with it";
}

TEST_F(CutShort, ALostDumpOfAProgramIsInTheHistoryOfItsCommandLine) {
  start_job(true);
  job_.id.clear();  // the process is no job
  begin_dump({"pages-1.img"});
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0},
                                  {"start_ticks", job_.start_ticks},
                                  {"command", {"sleep", "600"}}})
                  .ok());
  close();
  const auto runs = store_->runs("program:sleep 600", store::RunKind::dump);
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(runs->size(), 1U);
}

// Its request has added the run.
TEST_F(CutShort, AnUnconfirmedDumpIsNotAddedAgain) {
  start_job(true);
  begin_dump({"pages-1.img"});
  be_unconfirmed({});
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  const auto runs = store_->runs({}, store::RunKind::dump);
  ASSERT_TRUE(runs.ok());
  EXPECT_TRUE(runs->empty());
}

TEST_F(CutShort, TheEntryTellsTheRuntimeWhatWasToBeDumped) {
  start_job(true);
  job_.id.clear();  // a container that is not a job
  begin_dump({"pages-1.img"});
  const std::uint64_t start_ticks = probe::read_process(pid_)->start_ticks;
  ASSERT_TRUE(
      write_record(dir_,
                   {{"state", "started"},
                    {"created_unix_ns", 0},
                    {"start_ticks", start_ticks},
                    {"container",
                     {{"runtime", "podman"}, {"id", "4711"}, {"name", "shop"}, {"frozen", true}}}})
          .ok());
  const store::Checkpoint checkpoint = close();
  EXPECT_EQ(settled_.first, runtime::kind_named("podman"));
  EXPECT_EQ(settled_.second.container, "4711");
  EXPECT_EQ(settled_.second.process.start_ticks, start_ticks);
  EXPECT_EQ(settled_.second.images_dir, dir_.partial_images());
  EXPECT_TRUE(settled_.second.frozen);
  EXPECT_EQ(checkpoint.state, store::CheckpointState::failed);
  EXPECT_NE(checkpoint.error.find("podman container shop runs on"), std::string::npos)
      << checkpoint.error;
  EXPECT_EQ(report::read_checkpoint_record(dir_.path())->at("container").at("id"), "4711")
      << "the record keeps it";
}

// The reader's answer names another container than the file, so the test sees which one is used.
TEST_F(CutShort, TheRecordIsReadByAProcessWithoutRights) {
  start_job(true);
  begin_dump({"pages-1.img"});
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0}}).ok());
  helper_ = confine::Helper::start(
                {{"read a whole record",
                  [](const std::string&) {
                    return Result<std::string>(
                        R"({"created_unix_ns":0,"container":{"runtime":"runc","id":"other"}})");
                  }}})
                .value();
  close();
  EXPECT_EQ(settled_.second.container, "other");
}

// A container was taken for a process, and its images were removed although it was frozen.
TEST_F(CutShort, WhileNobodyCanReadTheRecordNothingIsDecided) {
  const Result<std::vector<pid_t>> reader = probe::children_of(getpid());
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->size(), 1U);
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0}}).ok());
  kill(reader->front(), SIGKILL);
  waitpid(reader->front(), nullptr, 0);
  const store::Checkpoint open = close();
  EXPECT_EQ(open.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(open.error.find("(kymod-reader) is gone"), std::string::npos) << open.error;
  EXPECT_TRUE(fs::exists(dir_.partial_images() + "/inventory.img"));
}

TEST_F(CutShort, ADamagedEntryHidesNothing) {
  start_job(true);
  begin_dump({"pages-1.img"});
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0},
                                  {"start_ticks", "many"},
                                  {"container", {{"runtime", 7}, {"id", json::array()}}}})
                  .ok());
  EXPECT_EQ(close().state, store::CheckpointState::failed);
}

// A disk that the images had filled had no room for the record, and the checkpoint could not be restored.
TEST_F(CutShort, WholeImagesAreTheCheckpointAlsoWhereTheirRecordCannotBeWritten) {
  start_job(true);
  begin_dump({"inventory.img"});
  fs::create_directory(dir_.record());  // as root may write everywhere, this is in the way
  end_process();
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
  EXPECT_EQ(store_->job("work")->state, store::JobState::dumped);
}

TEST_F(CutShort, ATakenNameOfTheImagesIsWaitedFor) {
  start_job(true);
  begin_dump({"inventory.img"});
  static_cast<void>(folder_.folder("c/images"));
  static_cast<void>(folder_.file("c/images/pages-1.img", "precious"));
  end_process();
  const store::Checkpoint waiting = close();
  EXPECT_EQ(waiting.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(waiting.error.find(dir_.images() + " exists"), std::string::npos) << waiting.error;
  EXPECT_TRUE(fs::exists(dir_.images() + "/pages-1.img"));
  fs::rename(dir_.images(), folder_.path() + "/theirs");
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
}

TEST_F(CutShort, PublishedImagesAreACheckpointAlsoWhereTheProcessRuns) {
  start_job(true);
  begin_dump({"inventory.img"});
  ASSERT_TRUE(publish_images(dir_).ok());
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_EQ(store_->job("work")->state, store::JobState::running);
}

// kymod stopped before it had listed the images, or after.
TEST_F(CutShort, TheImagesOfACompleteCheckpointAreListed) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  end_process();
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  json record = report::read_checkpoint_record(dir_.path()).value();
  ASSERT_EQ(record["images"].size(), 2U) << record;
  EXPECT_EQ(record["images"][0]["name"], "inventory.img");
  EXPECT_EQ(record["images"][0]["bytes"], 8);
  EXPECT_FALSE(record["images"][0]["xxh128"].get<std::string>().empty());
  EXPECT_EQ(record["images"][1]["name"], "pages-1.img");
}

TEST_F(CutShort, TheListThatWasWrittenBeforeTheImagesGotTheirNameIsKept) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  const json images = json::parse(R"([{"name":"core-7.img","bytes":1}])");
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0}, {"images", images}}).ok());
  ASSERT_TRUE(publish_images(dir_).ok());
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_EQ(report::read_checkpoint_record(dir_.path())->at("images"), images);
}

TEST_F(CutShort, ImagesAreKeptWhileTheProcessIsStillHeld) {
  start_job(true);
  ASSERT_EQ(kill(pid_, SIGSTOP), 0);
  ASSERT_TRUE(test::eventually([&] { return !probe::stopped_threads(pid_).empty(); }));
  begin_dump({"inventory.img"});
  const store::Checkpoint checkpoint = close();
  EXPECT_EQ(checkpoint.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(checkpoint.error.find(dir_.partial_images()), std::string::npos) << checkpoint.error;
  EXPECT_TRUE(is_lost(store_->checkpoint(id_).value())) << "no request has counted it";
  EXPECT_TRUE(fs::exists(dir_.partial_images() + "/inventory.img"));
  ASSERT_EQ(kill(pid_, SIGCONT), 0);
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  EXPECT_EQ(store_->runs({}, store::RunKind::dump)->size(), 1U);
  EXPECT_FALSE(fs::exists(dir_.partial_images()))
      << "the process was seen running, so its images are not needed";
}

// An older checkpoint of the job was restored, with the same pid, before the disk of the newer one answered. The newer
// one, all that was left of its process, was removed, because "process 12 runs on".
TEST_F(CutShort, ImagesAreKeptWhereAnotherProcessHasThePidOfTheOneThatIsGone) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  be_unconfirmed({{"leave_running", false}});
  json record = report::read_checkpoint_record(dir_.path()).value();
  record["start_ticks"] = job_.start_ticks - 1;
  ASSERT_TRUE(write_record(dir_, record).ok());
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_EQ(settled_.second.process.start_ticks, job_.start_ticks - 1);
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
  EXPECT_EQ(store_->job("work")->state, store::JobState::running) << "it is the restored one";
}

// The job counted as dumped, with its old pid, and nobody knew of the restored process any more.
TEST_F(CutShort, AJobThatWasRestoredWhileTheDiskWasSilentStaysAsItIs) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  dir_ = CheckpointDir(disk.path() + "/c");
  start_job(true);
  begin_dump({});
  std::ofstream(dir_.partial_images() + "/inventory.img") << "12345678";
  ASSERT_TRUE(write_record(dir_, {{"created_unix_ns", 0}, {"start_ticks", job_.start_ticks}}).ok());
  read_images_by(find_no_fault);
  end_process();
  disk.be("is-silent");
  EXPECT_EQ(close().state, store::CheckpointState::unconfirmed);
  store::Job restored = store_->job("work").value();
  restored.start_ticks += 1;
  EXPECT_TRUE(store_->update_job(restored).ok());
  disk.be("well");
  EXPECT_TRUE(test::eventually([&] { return close().state == store::CheckpointState::complete; }));
  EXPECT_EQ(store_->job("work")->state, store::JobState::running);
  EXPECT_EQ(store_->job("work")->start_ticks, restored.start_ticks);
}

TEST_F(CutShort, ImagesThatHoldNoProcessAreNoCheckpoint) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  be_unconfirmed({{"leave_running", true}});
  read_images_by(find_no_process);
  EXPECT_EQ(close().state, store::CheckpointState::failed);
}

TEST_F(CutShort, ImagesThatCannotBeLookedAtAreKeptWhereTheProcessIsGone) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  end_process();
  const std::string away = folder_.path() + "/away";
  fs::rename(dir_.partial_images(), away);  // as if the disk of the images were not mounted
  EXPECT_EQ(close().state, store::CheckpointState::unconfirmed);
  fs::rename(away, dir_.partial_images());
  const store::Checkpoint checkpoint = close();
  EXPECT_EQ(checkpoint.state, store::CheckpointState::failed) << "these files contain only text";
  EXPECT_NE(checkpoint.error.find("its images are damaged"), std::string::npos) << checkpoint.error;
  EXPECT_TRUE(fs::exists(dir_.partial_images() + "/pages-1.img"))
      << "the user may be able to repair them";
}

TEST_F(CutShort, NothingIsRemovedOrWrittenWhereAnotherUserLeadsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  start_job(true);
  const std::string theirs = folder_.folder("theirs");
  dir_ = CheckpointDir(theirs + "/c");
  ASSERT_TRUE(create_checkpoint_dir(dir_).ok());
  store::Checkpoint checkpoint;
  checkpoint.id = id_;
  checkpoint.job_id = job_.id;
  checkpoint.pid = pid_;
  checkpoint.directory = dir_.path();
  ASSERT_TRUE(store_->add_checkpoint(checkpoint).ok());
  // The images of another dump that was cut short.
  static_cast<void>(folder_.folder("p/images.partial"));
  const std::string precious = folder_.file("p/images.partial/pages-1.img", "precious");
  fs::rename(dir_.path(), theirs + "/aside");
  fs::create_directory_symlink(folder_.path() + "/p", dir_.path());
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  const store::Checkpoint led = close();
  EXPECT_EQ(led.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(led.error.find(theirs + ": it belongs to uid 65534"), std::string::npos) << led.error;
  EXPECT_TRUE(fs::exists(precious));
  EXPECT_FALSE(fs::exists(folder_.path() + "/p/checkpoint.json"));
  EXPECT_EQ(settled_.second.process.pid, pid_) << "it must not stay frozen";
  EXPECT_EQ(settled_.second.work_dir, "");
  EXPECT_EQ(settled_.second.images_dir, "");
  // The owner of the folder puts everything back.
  fs::remove(dir_.path());
  fs::rename(theirs + "/aside", dir_.path());
  ASSERT_EQ(chown(theirs.c_str(), 0, 0), 0);
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  EXPECT_FALSE(fs::exists(dir_.partial_images()));
}

// podman's archive of /dev/shm was left behind in memory.
TEST_F(CutShort, ACheckpointIsCompleteOnlyWithTheSharedMemoryOfItsContainer) {
  start_job(true);
  begin_dump({"pages-1.img", "inventory.img"});
  runtime::DumpSpec spec;
  spec.scratch_dir = runtime::scratch_path(id_);
  ASSERT_TRUE(runtime::make_scratch(spec.scratch_dir).ok());
  std::ofstream(spec.scratch_dir + runtime::kSharedMemory) << std::string(100'000, 's');
  ASSERT_EQ(::mount("kymo", dir_.work().c_str(), "tmpfs", 0, "size=64k"), 0);
  end_process();
  const store::Checkpoint full = close();
  EXPECT_EQ(full.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(full.error.find(spec.scratch_dir), std::string::npos) << full.error;
  EXPECT_EQ(::umount(dir_.work().c_str()), 0);
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_EQ(fs::file_size(dir_.work() + runtime::kSharedMemory), 100'000U);
  EXPECT_FALSE(fs::exists(spec.scratch_dir));
}

// A dump that writes its images to memory first.
class CutShortInMemory : public CutShort {
 protected:
  void TearDown() override {
    runtime::drop_memory_images(memory_);
    CutShort::TearDown();
  }
  void begin_dump_to_memory(std::initializer_list<const char*> images) {
    begin_dump({});
    const Result<std::string> chosen =
        runtime::choose_memory_images(id_, 1000, dir_.partial_images());
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    memory_ = *chosen;
    ASSERT_TRUE(runtime::make_memory_images(memory_).ok());
    for (const char* image : images) std::ofstream(memory_ + "/" + image) << "12345678";
  }
  // The process of a dump to memory ends, and the disk has no space for the images. Returns the
  // checkpoint as it is then.
  store::Checkpoint close_on_a_full_disk() {
    begin_dump_to_memory({"inventory.img"});
    std::ofstream(memory_ + "/pages-1.img") << std::string(100'000, 'p');
    const std::string partial = dir_.partial_images();
    EXPECT_EQ(::mount("kymo", partial.c_str(), "tmpfs", 0, "size=64k"), 0);
    end_process();
    store::Checkpoint full = close();
    EXPECT_EQ(::umount(partial.c_str()), 0);
    return full;
  }
  [[nodiscard]] bool in_memory() const { return !runtime::find_memory_images(id_).empty(); }

  std::string memory_;
};

TEST_F(CutShortInMemory, WholeImagesOfAProcessThatIsGoneAreTheCheckpoint) {
  start_job(true);
  begin_dump_to_memory({"pages-1.img", "inventory.img"});
  end_process();
  read_images_by(find_no_fault);
  EXPECT_EQ(close().state, store::CheckpointState::complete);
  EXPECT_TRUE(fs::exists(dir_.images() + "/pages-1.img"));
  EXPECT_TRUE(fs::exists(dir_.images() + "/inventory.img"));
  EXPECT_EQ(settled_.second.images_dir, memory_) << "the runtime must settle the images in memory";
  EXPECT_FALSE(in_memory());
}

TEST_F(CutShortInMemory, ImagesStayInMemoryWhileTheirDiskIsFull) {
  start_job(true);
  const store::Checkpoint full = close_on_a_full_disk();
  EXPECT_EQ(full.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(full.error.find("in memory, in " + memory_), std::string::npos) << full.error;
  EXPECT_TRUE(in_memory());
}

// The job is "exited" only if the images in memory are lost, for example by a reboot.
TEST_F(CutShortInMemory, AJobWhoseImagesAreOnlyInMemoryCountsAsDumped) {
  start_job(true);
  EXPECT_EQ(close_on_a_full_disk().state, store::CheckpointState::unconfirmed);
  EXPECT_EQ(store_->job(job_.id)->state, store::JobState::dumped);
  runtime::drop_memory_images(memory_);
  EXPECT_EQ(close().state, store::CheckpointState::failed);
  EXPECT_EQ(store_->job(job_.id)->state, store::JobState::exited);
}

TEST_F(CutShortInMemory, ASilentDiskIsNotedBeforeItAnswers) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  dir_ = CheckpointDir(disk.path() + "/c");
  start_job(true);
  begin_dump_to_memory({"pages-1.img", "inventory.img"});
  end_process();
  read_images_by(find_no_fault);
  disk.be("is-silent");
  const store::Checkpoint silent = close();
  EXPECT_EQ(silent.state, store::CheckpointState::unconfirmed);
  EXPECT_NE(silent.error.find("the disk has not taken its images yet"), std::string::npos)
      << silent.error;
  disk.be("well");
  EXPECT_TRUE(test::eventually([&] { return close().state == store::CheckpointState::complete; }));
}

TEST_F(CutShortInMemory, ImagesAreRemovedOnlyOnceTheOutcomeIsKnown) {
  start_job(true);
  begin_dump_to_memory({"pages-1.img", "inventory.img"});
  settle_old_scratch(*store_);
  EXPECT_TRUE(in_memory()) << "the result is unknown, so the images must be kept";
  store::Checkpoint known = store_->checkpoint(id_).value();
  known.state = store::CheckpointState::failed;
  ASSERT_TRUE(store_->update_checkpoint(known).ok());
  settle_old_scratch(*store_);
  EXPECT_FALSE(in_memory());
}

}  // namespace
}  // namespace kymo::daemon
