// Requests at the same time: of different processes and directories they run side by side, of the
// same one the second is refused and harms nothing.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kProcesses = 8;

// Calls it with each number at once; returns once all have.
void at_once(const std::function<void(int)>& call) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) threads.emplace_back(call, i);
  for (std::thread& thread : threads) thread.join();
}

std::string name(int i) {
  return "work" + std::to_string(i);
}

TEST(ConcurrentTest, EightProcessesAreDumpedAndRestoredAtOnce) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  std::vector<json> jobs;
  for (int i = 0; i < kProcesses; ++i) jobs.push_back(kymod.churn(16, name(i)));
  std::vector<Outcome> outcomes(kProcesses);
  at_once([&](int i) {
    outcomes[static_cast<std::size_t>(i)] =
        kymod.kymo({"dump", "process", name(i), "--dir", kymod.path(name(i))});
  });
  for (const Outcome& dump : outcomes) EXPECT_EQ(dump.exit_code, 0) << dump.err;
  for (int i = 0; i < kProcesses; ++i) {
    EXPECT_TRUE(fs::exists(kymod.path(name(i)) + "/images/inventory.img"));
    EXPECT_EQ(kymod.job(name(i))["last_checkpoint"], kymod.path(name(i)));
  }
  at_once([&](int i) {
    outcomes[static_cast<std::size_t>(i)] = kymod.kymo({"restore", "process", kymod.path(name(i))});
  });
  for (const Outcome& restore : outcomes) EXPECT_EQ(restore.exit_code, 0) << restore.err;
  for (const json& job : jobs) EXPECT_TRUE(kymod.goes_on(job)) << read_file(job["stderr_path"]);
}

TEST(ConcurrentTest, OfTheSameProcessOrDirectoryTheSecondIsRefused) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const SlowMount mount(kymod.folder().folder("disk"), kymod.folder().folder("slow"), "256M");
  ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
  static_cast<void>(kymod.churn(128, "first"));
  const json second = kymod.churn(8, "second");
  const std::string dir = kymod.path("slow") + "/c";
  Outcome dump;
  std::thread client([&] {
    dump = kymod.kymo({"dump", "process", "first", "--leave-running", "--dir", dir});
  });
  EXPECT_TRUE(eventually([&] { return fs::exists(dir + "/images.partial"); }));
  const Outcome same_process = kymod.kymo({"dump", "process", "first"});
  const Outcome same_directory = kymod.kymo({"dump", "process", "second", "--dir", dir});
  const Outcome restore = kymod.kymo({"restore", "process", dir});
  const Outcome other_process = kymod.kymo({"dump", "process", "second", "--leave-running"});
  const bool dumped_meanwhile = fs::exists(dir + "/images");
  client.join();
  ASSERT_FALSE(dumped_meanwhile) << "the dump was over too soon: nothing was tested";
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_EQ(other_process.exit_code, 0) << other_process.err;
  for (const auto& [outcome, says] : {std::pair(same_process, "is being dumped already"),
                                      std::pair(same_directory, "is in use by another request"),
                                      std::pair(restore, "another request uses it")}) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  }
  EXPECT_TRUE(kymod.goes_on(second));
  EXPECT_EQ(json::parse(read_file(dir + "/checkpoint.json"))["state"], "complete");
  ended_metadata(dir + "/recordings/dump.tsv");  // nobody uses the mount any more
}

}  // namespace
}  // namespace kymo::test
