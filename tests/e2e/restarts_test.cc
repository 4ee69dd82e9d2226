// A service manager starts kymod again and again with the same arguments.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(RestartsTest, TheDaemonWideRecordingOfAnEarlierStartDoesNotKeepItFromStarting) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const BreakableCriu criu;
  Kymod kymod({"--profiling-metrics-log", folder.path() + "/all.tsv", "--criu", criu.path()});
  kymod.start();
  const json job = kymod.churn(16, "work");
  EXPECT_EQ(kymod.stop(SIGTERM), 0);

  kymod.start();
  EXPECT_NE(kymod.log().find(folder.path() + "/all-2.tsv"), std::string::npos) << kymod.log();
  EXPECT_NE(kymod.log().find(" info " + folder.path() + "/all.tsv holds an earlier recording"),
            std::string::npos)
      << kymod.log();
  const std::string dir = kymod.path("c");
  kymod.kill_when_pages_are_dumped(criu, {"dump", "process", "work", "--dir", dir});

  kymod.start();
  EXPECT_NE(kymod.log().find(folder.path() + "/all-3.tsv"), std::string::npos) << kymod.log();
  EXPECT_TRUE(kymod.goes_on(job))
      << "the next kymod must let the process of the unfinished dump go on";
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_EQ(json::parse(read_file(dir + "/checkpoint.json"))["state"], "failed");
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--leave-running"}).exit_code, 0);
  EXPECT_EQ(kymod.stop(SIGTERM), 0);

  const auto state = [&](const std::string& stem) {
    return json::parse(read_file(folder.path() + "/" + stem + ".meta.json"))["state"];
  };
  EXPECT_EQ(state("all"), "ended");
  EXPECT_EQ(state("all-2"), "running")
      << "the recorder was killed, and the pid in the metadata shows it";
  EXPECT_EQ(state("all-3"), "ended");
  // The rows of the last second of the killed kymod were only in memory.
  for (const char* name : {"/all.tsv", "/all-3.tsv"}) {
    EXPECT_GT(read_recording(folder.path() + name).at("Time (ns)").size(), 1U) << name;
  }
  EXPECT_EQ(read_file(folder.path() + "/all-2.tsv").rfind("Time (ns)\t", 0), 0U);
  kill(job["pid"].get<pid_t>(), SIGKILL);
}

}  // namespace
}  // namespace kymo::test
