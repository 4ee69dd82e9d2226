// Runs, dumps and restores a process through kymod, and checks what must continue after the end of
// what.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

TEST(LifecycleTest, AProcessIsDumpedRestoredAndGoesOn) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(16, "work");
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string dir = dump["directory"];
  EXPECT_EQ(dir, kymod.state() + "/checkpoints/work-1");
  EXPECT_EQ(dump["pid"], job["pid"]);
  EXPECT_GE(dump["stats"]["pages_written"].get<int>(), 16 * 256);
  EXPECT_GT(dump["stats"]["frozen_time_us"].get<int>(), 0);
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  EXPECT_EQ(kymod.job("work")["last_checkpoint"], dir);
  EXPECT_NE(kill(job["pid"].get<pid_t>(), 0), 0);

  struct stat info {};
  ASSERT_EQ(stat((dir + "/images").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_FALSE(fs::exists(dir + "/images.partial"));
  const nlohmann::json record = nlohmann::json::parse(read_file(dir + "/checkpoint.json"));
  EXPECT_EQ(record["format_version"], 1);
  EXPECT_EQ(record["state"], "complete");
  EXPECT_EQ(record["stats"], dump["stats"]);

  const nlohmann::json restored = kymod.kymo_json({"restore", "process", dir});
  EXPECT_EQ(restored["pid"], job["pid"]);
  EXPECT_EQ(restored["job"], "work");
  EXPECT_GE(restored["stats"]["pages_restored"].get<int>(), 16 * 256);
  EXPECT_TRUE(kymod.goes_on(job));
  EXPECT_EQ(kymod.job("work")["state"], "running");

  const nlohmann::json about = ended_metadata(restored["recording"])["about"];
  EXPECT_EQ(about["request"], "restore");
  EXPECT_EQ(about["outcome"], "ok");
  EXPECT_EQ(about["job"]["name"], "work");
}

// An operator archives a checkpoint by hand. The next dump took its directory, and retention then removed that as the
// oldest one: the job and its only checkpoint were lost.
TEST(LifecycleTest, ACheckpointThatWasMovedAwayCostsNoOther) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--keep-count", "1"});
  kymod.start();
  const nlohmann::json job = kymod.churn(1, "work");
  const nlohmann::json first = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
  const std::string directory = first["directory"];
  fs::rename(directory, kymod.path("archive"));
  const nlohmann::json second = kymod.kymo_json({"dump", "process", "work"});
  EXPECT_NE(second["directory"], directory);

  const nlohmann::json listed = kymod.kymo_json({"checkpoints"});
  ASSERT_EQ(listed.size(), 2U) << listed;
  EXPECT_EQ(listed[0]["state"], "failed");
  EXPECT_NE(listed[0]["error"].get<std::string>().find("its directory is gone"), std::string::npos);
  EXPECT_EQ(listed[1]["state"], "complete");
  EXPECT_EQ(kymod.kymo({"delete", listed[0]["id"]}).exit_code, 0);
  EXPECT_EQ(kymod.kymo_json({"checkpoints"}).size(), 1U);
  EXPECT_EQ(kymod.kymo({"restore", "work"}).exit_code, 0);
  EXPECT_TRUE(kymod.goes_on(job));
}

// CRIU makes the process a child of the thread of kymod that started CRIU. The signal came when that thread ended.
TEST(LifecycleTest, AProcessThatAsksForASignalWhenItsParentEndsIsRestored) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.kymo_json(
      {"run", "process", "--name", "work", "--", "/usr/bin/setpriv", "--pdeathsig", "KILL",
       "/bin/sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(kymod.goes_on(job)) << kymod.log();
    const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
    EXPECT_EQ(kymod.kymo({"restore", dump["directory"]}).exit_code, 0);
    // The threads of other requests end as well.
    for (int i = 0; i < 5; ++i) EXPECT_EQ(kymod.job("work")["state"], "running") << kymod.log();
  }
  EXPECT_TRUE(kymod.goes_on(job)) << kymod.log();
}

TEST(LifecycleTest, ALogThatNobodyReadsHoldsUpNothing) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const std::string socket = folder.path() + "/socket";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reads(ends[0]);
  FileDescriptor log(ends[1]);
  ASSERT_EQ(fcntl(log.get(), F_SETPIPE_SZ, 4096), 4096);
  const pid_t kymod = fork();
  if (kymod == 0) {
    dup2(log.get(), STDERR_FILENO);
    const std::string state = folder.path() + "/state";
    execl(KYMOD_PROGRAM, KYMOD_PROGRAM, "--socket", socket.c_str(), "--state-dir", state.c_str(),
          "--http", "127.0.0.1:0", "--criu", criu_path().c_str(), "--log-level", "debug", nullptr);
    _exit(127);
  }
  ASSERT_GT(kymod, 0);
  log.reset();
  const auto is_full =
      [&reads] {  // the pipe counts as full if a line does not fit, and lines are shorter than this
        int bytes = 0;
        return ioctl(reads.get(), FIONREAD, &bytes) == 0 && bytes > 2048;
      };
  const auto kymo = [&](std::vector<std::string> words) {
    words.insert(words.begin(), KYMO_PROGRAM);
    words.insert(words.end(), {"--socket", socket});
    return run(words);
  };
  ASSERT_TRUE(eventually([&] { return fs::exists(socket); }));
  EXPECT_TRUE(eventually([&] { return kymo({"ps"}).exit_code == 0; }));
  for (int i = 0; i < 20; ++i) {  // each request is refused, with a line in the log
    EXPECT_EQ(kymo({"dump", "process", "nobody"}).exit_code, 1);
  }
  EXPECT_TRUE(eventually(is_full));
  EXPECT_EQ(kill(kymod, SIGTERM), 0);
  int status = 0;
  const bool ended = eventually([&] { return waitpid(kymod, &status, WNOHANG) == kymod; },
                                std::chrono::seconds(20));
  EXPECT_TRUE(ended) << "kymod did not stop, because nobody reads its log";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_full()) << "the log must not have been read";
  if (!ended) {
    kill(kymod, SIGKILL);
    waitpid(kymod, &status, 0);
  }
}

TEST(LifecycleTest, AFailureThatNobodyReadsEndsItAllTheSame) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reads(ends[0]);
  const FileDescriptor log(ends[1]);
  ASSERT_EQ(fcntl(log.get(), F_SETPIPE_SZ, 4096), 4096);
  const std::string much(4096, 'x');
  ASSERT_EQ(write(log.get(), much.data(), much.size()), static_cast<ssize_t>(much.size()));
  const pid_t kymod = fork();
  if (kymod == 0) {
    dup2(log.get(), STDERR_FILENO);
    execl(KYMOD_PROGRAM, KYMOD_PROGRAM, "--socket", "/dev/null/socket", "--no-such-flag", nullptr);
    _exit(127);
  }
  ASSERT_GT(kymod, 0);
  int status = 0;
  const bool ended = eventually([&] { return waitpid(kymod, &status, WNOHANG) == kymod; },
                                std::chrono::seconds(20));
  EXPECT_TRUE(ended);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  if (!ended) {
    kill(kymod, SIGKILL);
    waitpid(kymod, &status, 0);
  }
}

TEST(LifecycleTest, LeaveRunningLeavesItRunningAndCanBeDumpedAgain) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const std::string pid = std::to_string(job["pid"].get<int>());
  for (const char* dir : {"one", "two"}) {
    const nlohmann::json dump =
        kymod.kymo_json({"dump", "process", pid, "--leave-running", "--dir", kymod.path(dir)});
    EXPECT_EQ(dump["job"], "work");
    EXPECT_TRUE(fs::exists(kymod.path(dir) + "/images/inventory.img"));
    EXPECT_TRUE(kymod.goes_on(job));
  }
}

TEST(LifecycleTest, BareImagesAreRestoredAndTheirDirectoryIsLeftAlone) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string bare = kymod.path("bare");
  fs::copy(dump["images_directory"].get<std::string>(), bare);
  const auto entries = std::distance(fs::directory_iterator(bare), fs::directory_iterator());
  const nlohmann::json restored = kymod.kymo_json({"restore", "process", bare});
  EXPECT_EQ(restored["pid"], job["pid"]);
  EXPECT_TRUE(kymod.goes_on(job));
  EXPECT_EQ(std::distance(fs::directory_iterator(bare), fs::directory_iterator()), entries);
  EXPECT_EQ(kymod.job(restored["job"])["state"], "running");
}

TEST(LifecycleTest, JobsOutliveAKilledDaemonAndTheNextTakesOver) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  EXPECT_TRUE(fs::exists(kymod.socket())) << "a killed daemon leaves its socket";
  EXPECT_TRUE(kymod.goes_on(job));
  kymod.start();
  EXPECT_EQ(kymod.job("work")["state"], "running");
  EXPECT_EQ(kymod.job("work")["pid"], job["pid"]);
  kill(job["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return kymod.job("work")["state"] == "exited"; }));
}

TEST(LifecycleTest, ASignalStopsItCleanly) {
  KYMO_NEEDS_CRIU();
  for (const int signal : {SIGTERM, SIGINT}) {
    Kymod kymod;
    kymod.start();
    EXPECT_EQ(kymod.stop(signal), 0);
    EXPECT_FALSE(fs::exists(kymod.socket()));
    EXPECT_TRUE(kymod.logs("stopped"));
  }
}

TEST(LifecycleTest, AStopWaitsForTheDumpThatRuns) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(256, "work");
  Outcome dump;
  std::thread client([&] { dump = kymod.kymo({"dump", "process", "work"}); });
  const std::string dir = kymod.state() + "/checkpoints/work-1";
  EXPECT_TRUE(eventually([&] { return fs::exists(dir + "/images.partial"); }));
  EXPECT_EQ(kymod.stop(SIGTERM), 0);
  client.join();
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_TRUE(fs::exists(dir + "/images/inventory.img"));
  EXPECT_EQ(ended_metadata(dir + "/recordings/dump.tsv")["about"]["outcome"], "ok");
}

TEST(LifecycleTest, ADumpCutShortByAKillHarmsNothing) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  const nlohmann::json job = kymod.churn(16, "work");
  const std::string dir = kymod.state() + "/checkpoints/work-1";
  kymod.kill_when_pages_are_dumped(criu, {"dump", "process", "work"});
  kymod.start();
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_TRUE(kymod.logs("kymod stopped during the dump")) << kymod.log();
  const Outcome restore = kymod.kymo({"restore", "process", dir});
  EXPECT_EQ(restore.exit_code, 1);
  EXPECT_NE(restore.err.find("kymod stopped during the dump"), std::string::npos) << restore.err;
  EXPECT_TRUE(kymod.goes_on(job)) << "CRIU must let the process go on when its kymod has ended";
}

}  // namespace
}  // namespace kymo::test
