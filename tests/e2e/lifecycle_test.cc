// A process through the daemon: run, dump, restore, and what must outlive what.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "programs.h"
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
    EXPECT_NE(kymod.log().find("stopped"), std::string::npos);
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
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(256, "work");
  std::thread client([&] { static_cast<void>(kymod.kymo({"dump", "process", "work"})); });
  const std::string dir = kymod.state() + "/checkpoints/work-1";
  EXPECT_TRUE(eventually([&] { return fs::exists(dir + "/images.partial/pages-1.img"); }));
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  client.join();
  kymod.start();
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_NE(kymod.log().find("kymod ended during the dump"), std::string::npos) << kymod.log();
  const Outcome restore = kymod.kymo({"restore", "process", dir});
  EXPECT_EQ(restore.exit_code, 1);
  EXPECT_NE(restore.err.find("cut short"), std::string::npos) << restore.err;
  EXPECT_TRUE(kymod.goes_on(job)) << "criu lets go of the process when its daemon is gone";
}

}  // namespace
}  // namespace kymo::test
