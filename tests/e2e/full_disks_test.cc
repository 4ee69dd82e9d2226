// The disk of the images or of kymod's state has no room, or no inodes. kymo must print one clear
// line, the process must run on (or its images must stay), no incomplete checkpoint may be listed,
// and the next request must work.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/proc/process.h"
#include "programs.h"
#include "small_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class FullDisksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_ = std::make_unique<Kymod>();
    kymod_->start();
    job_ = kymod_->churn(16, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(pid(), SIGKILL);
  }

  [[nodiscard]] pid_t pid() const { return job_["pid"].get<pid_t>(); }
  [[nodiscard]] std::string dir() const { return kymod_->path("checkpoint"); }

  // Expects that kymo failed with one line that contains this.
  static void expect_failure(const Outcome& outcome, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  void expect_no_checkpoint() const {
    EXPECT_FALSE(fs::exists(dir() + "/images"));
    EXPECT_FALSE(fs::exists(dir() + "/images.partial"));
    EXPECT_EQ(kymod_->job("work")["state"], "running");
    EXPECT_EQ(kymod_->job("work").value("last_checkpoint", ""), "");
    EXPECT_TRUE(probe::stopped_threads(pid()).empty());
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  }
  void expect_only_images() const {
    EXPECT_FALSE(probe::process_lives(pid(), 0)) << "a process of the restore is left";
    EXPECT_EQ(kymod_->job("work")["state"], "dumped");
    EXPECT_TRUE(fs::is_empty(kymod_->state() + "/restoring"));
  }

  std::unique_ptr<Kymod> kymod_;
  json job_;
};

TEST_F(FullDisksTest, ADiskTooSmallForTheImages) {
  const SmallDisk disk(kymod_->path("checkpoint"), "size=8m");
  const std::string dir = kymod_->path("checkpoint/c");
  const Outcome failed = kymod_->kymo({"dump", "process", "work", "--force", "--dir", dir});
  expect_failure(failed, "No space left on device");
  EXPECT_NE(failed.err.find("; the process runs on"), std::string::npos) << failed.err;
  EXPECT_TRUE(std::regex_search(failed.err, std::regex("about [0-9.]+ MiB are needed in " + dir)))
      << failed.err;
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_FALSE(fs::exists(dir + "/images.partial"));
  expect_no_checkpoint();
}

TEST_F(FullDisksTest, AFullDiskUnderTheStateDirectory) {
  const SmallDisk disk(kymod_->state() + "/checkpoints", "size=16m");
  disk.fill();
  expect_failure(kymod_->kymo({"dump", "process", "work", "--force"}), "No space left on device");
  expect_no_checkpoint();
  disk.empty();
}

TEST_F(FullDisksTest, ADumpThatClearlyHasNoRoomIsRefusedBeforeTheProcessIsStopped) {
  const SmallDisk disk(kymod_->path("small"), "size=8m");
  const std::string dir = kymod_->path("small/c");
  for (int night = 0; night < 3; ++night) {
    const Outcome refused = kymod_->kymo({"dump", "process", "work", "--dir", dir});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_TRUE(std::regex_search(
        refused.err,
        std::regex("there is no room for its images: about [0-9.]+ MiB are needed in " + dir +
                   ", and its disk has [0-9.]+ MiB free")))
        << refused.err;
  }
  EXPECT_FALSE(fs::exists(dir));
  const Outcome foreseen = kymod_->kymo({"dump", "process", "work", "--dir", dir, "--dry-run"});
  EXPECT_EQ(foreseen.exit_code, 1);
  EXPECT_TRUE(std::regex_search(
      foreseen.out,
      std::regex("refuses: there is no room for the images \\(about [0-9.]+ MiB are needed in " +
                 dir +
                 ", and its disk has [0-9.]+ MiB free\\)\\. Free space, or .*failure disk-full")))
      << foreseen.out;
  EXPECT_EQ(kymod_->kymo({"check", "process", "work"}).exit_code, 0) << "the usual place has room";
  const auto metrics = [&] {
    return run({"curl", "-s", "http://" + kymod_->http() + "/metrics"}).out;
  };
  for (const char* line :
       {"kymo_dumps_total{result=\"error\"} 0\n", "kymo_dumps_total{result=\"refused\"} 3\n",
        "kymo_refusals_total{request=\"dump\",reason=\"disk-full\"} 3\n",
        "kymo_refused_in_a_row{request=\"dump\",target=\"job:work\"} 3\n",
        "kymo_criu_notifications_total{name=\"network-lock\"} 0\n",
        "kymo_stood_still_seconds_count 0\n"}) {
    EXPECT_NE(metrics().find(line), std::string::npos) << line << metrics();
  }
  const nlohmann::json history = kymod_->kymo_json({"history", "work"});
  ASSERT_EQ(history["runs"].size(), 3U) << history;
  EXPECT_EQ(history["runs"][0]["refused"], true);
  EXPECT_EQ(history["runs"][0]["failure"], "disk-full");
  EXPECT_NE(kymod_->kymo({"history", "work"}).out.find("3 refused"), std::string::npos);
  const Outcome told = kymod_->kymo({"explain", "work"});
  EXPECT_NE(told.out.find("The newest dump was refused at"), std::string::npos) << told.err;

  // Another kymod goes on counting, until a dump succeeds.
  kymod_->stop(SIGTERM);
  kymod_->start();
  EXPECT_NE(metrics().find("target=\"job:work\"} 3\n"), std::string::npos);
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--leave-running"}));
  EXPECT_EQ(metrics().find("kymo_refused_in_a_row"), std::string::npos);
  const auto last_success = [&] {
    const std::string text = metrics();
    const std::size_t at =
        text.find("kymo_last_success_timestamp_seconds{request=\"dump\",target=\"job:work\"} ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(last_success(), "");
  kymod_->stop(SIGTERM);
  kymod_->start();
  EXPECT_NE(last_success(), "");
  EXPECT_EQ(kymod_->kymo_json({"history", "work", "--last", "1"})["runs"].size(), 1U);
  EXPECT_EQ(kymod_->kymo_json({"history", "work", "--last", "2"})["runs"].size(), 4U);
}

TEST_F(FullDisksTest, ARestoreThatCouldNotBeStoredIsKnownToTheNextKymod) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir()}));
  sqlite3* other = nullptr;  // locks the database
  ASSERT_EQ(sqlite3_open((kymod_->state() + "/kymo.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Outcome restored = kymod_->kymo({"restore", "process", dir()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE(restored.err.find("kept only in memory"), std::string::npos) << restored.err;
  EXPECT_EQ(kymod_->job("work")["state"], "running");
  kymod_->stop(SIGKILL);
  sqlite3_close(other);
  kymod_->start();
  EXPECT_EQ(kymod_->job("work")["state"], "running") << kymod_->log();
  EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
}

// CRIU works without its log. kymo must say what could not be stored, and the process must be
// restored.
TEST_F(FullDisksTest, ARestoreFromAFullDisk) {
  const SmallDisk disk(dir(), "size=64m");
  const std::string checkpoint = dir() + "/c";
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", checkpoint}));
  disk.fill();
  const Outcome restored = kymod_->kymo({"restore", "process", checkpoint});
  if (restored.exit_code != 0) {
    expect_failure(restored, checkpoint);
    expect_only_images();
    disk.empty();
    static_cast<void>(kymod_->kymo_json({"restore", "process", checkpoint}));
  }
  EXPECT_TRUE(kymod_->goes_on(job_)) << restored.err;
}

TEST(FullDiskOfInodesTest, ADiskWithoutFreeInodesIsNamedByWhatItRefuses) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(16, "work");
  SmallDisk disk(kymod.path("small"), "size=64m,nr_inodes=200");
  const std::string dir = kymod.path("small/c");
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir}));
  wait_until_recorded(dir, {"dump"});
  disk.take_inodes();
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 1);
  EXPECT_EQ(restored.err.find("Invalid request code"), std::string::npos) << restored.err;
  EXPECT_NE(
      restored.err.find("its disk has no free inodes, and each file needs one (df -i): delete "
                        "files there, or choose another directory"),
      std::string::npos)
      << restored.err;
  EXPECT_EQ(std::count(restored.err.begin(), restored.err.end(), '\n'), 1) << restored.err;
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  EXPECT_EQ(kymod.kymo({"verify", dir}).exit_code, 0) << "it writes nothing";
  EXPECT_EQ(kymod.kymo_json({"history", "work", "--restores"})["runs"].back()["failure"],
            "disk-full");
  disk.give_all_inodes();
  static_cast<void>(kymod.kymo_json({"restore", dir}));
  wait_until_recorded(dir, {"restore"});

  disk.take_inodes(7);
  const Outcome refused = kymod.kymo({"dump", "process", "work", "--dir", kymod.path("small/d")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("its disk has 7 free inodes"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(kymod.path("small/d")));
  for (const char* const way : {"--stream", "--no-stream"}) {
    disk.give_all_inodes();
    disk.take_inodes(7);
    const Outcome failed = kymod.kymo(
        {"dump", "process", "work", "--dir", kymod.path("small/") + way, "--force", way});
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_NE(failed.err.find(" free inodes, and each file needs one"), std::string::npos)
        << failed.err;
    EXPECT_EQ(failed.err.find(" needed in "), std::string::npos)
        << "space helps not: " << failed.err;
  }
  EXPECT_TRUE(kymod.goes_on(job));
}

TEST(FullDiskOfInodesTest, AJobThatHasNoInodeForItsOutputIsRefusedWithTheCause) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  SmallDisk disk(kymod.state(), "size=64m,nr_inodes=100,mode=0700");
  kymod.start();
  disk.take_inodes();
  const Outcome refused = kymod.kymo({"run", "process", "--", "true"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("its disk has no free inodes"), std::string::npos) << refused.err;
  disk.give_all_inodes();
  EXPECT_EQ(kymod.kymo({"run", "process", "--", "true"}).exit_code, 0);
}

}  // namespace
}  // namespace kymo::test
