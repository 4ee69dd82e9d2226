// A dump or restore that did not succeed gets the same diagnosis as a slow one that did: where its time went, what it waited
// for, and what would have helped. The disks in these tests are so slow that nothing else can be the cause.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "loop_disk.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

using nlohmann::json;

class FailedVerdictTest : public ::testing::Test {
 protected:
  static constexpr int kMiB = 64;  // at the rate of the slow disks, more than 30 seconds
  static constexpr char kSlowly[] = "2M";
  static constexpr std::uint64_t kBytesASecond = 2 << 20;

  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    static_cast<void>(kymod_.churn(kMiB, "work"));
  }
  void TearDown() override { disk_.reset(); }
  // Expects that the text says that the disk took at least half of the time, and that a faster disk helps.
  static void expect_the_disk(const std::string& text, const std::string& who,
                              const std::string& advice) {
    expect_share(text, who + " waited for the disk for ([0-9]+) % of the", advice);
  }
  static void expect_share(const std::string& text, const std::string& said,
                           const std::string& advice) {
    std::smatch share;
    ASSERT_TRUE(std::regex_search(text, share, std::regex(said))) << text;
    EXPECT_GE(std::stoi(share[1]), 50) << text;
    EXPECT_NE(text.find(advice), std::string::npos) << text;
    EXPECT_EQ(text.find("when the machine is less busy"), std::string::npos) << text;
  }
  // The same of the answer of a dump, of its record, of what explains it, of the history and of the log.
  void expect_dump_waited_for_disk(const Outcome& dump, const std::string& directory,
                                   const std::string& ending) const {
    const std::string advice = "Write the images to a faster disk or to a tmpfs.";
    EXPECT_EQ(dump.exit_code, 1) << dump.out;
    expect_the_disk(dump.err, "kymod", advice);
    EXPECT_NE(dump.err.find("The longest phase, \"memory\", took "), std::string::npos) << dump.err;
    const json record = json::parse(read_file(directory + "/checkpoint.json"), nullptr, false);
    ASSERT_EQ(record["verdict"]["findings"][0]["rule"], "disk-wait") << record;
    EXPECT_EQ(record["verdict"]["lines"][0].get<std::string>().find(ending), 0U) << record;
    for (const std::string& name : {std::string("work"), directory}) {
      const std::string told = kymod_.kymo({"explain", name}).out;
      expect_the_disk(told, "kymod", advice);
      EXPECT_NE(told.find("\n  " + ending), std::string::npos) << told;
    }
    const json run = kymod_.kymo_json({"history", "work"})["runs"].back();
    expect_the_disk(run["error"], "kymod", advice);
    expect_the_disk(kymod_.log(), "kymod", advice);
  }

  // Dumps to a disk that takes no pages, and cancels the dump after a while. Returns what it says.
  [[nodiscard]] std::string dump_and_cancel(const Kymod& kymod,
                                            const std::vector<std::string>& target) const {
    const MoodyDisk disk(folder_);
    EXPECT_TRUE(disk.mounted()) << "FUSE does not work here";
    disk.be("stalls-at-pages");
    const std::vector<std::string> words{"dump", target[0], target[1], "--dir",
                                         disk.path() + "/one"};
    Outcome dump;
    std::thread client([&] { dump = kymod.kymo(words); });
    EXPECT_TRUE(eventually([&] { return disk.holds_pages(); })) << kymod.log();
    // So that this is most of the time.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const Outcome cancel = kymod.kymo({"cancel", target[1]});
    EXPECT_EQ(cancel.exit_code, 0) << cancel.err;
    client.join();
    disk.be("well");
    return dump.err;
  }

  TemporaryDirectory folder_;
  Kymod kymod_;
  std::optional<LoopDisk> disk_;
};

TEST_F(FailedVerdictTest, ADumpThatRanOutOfTimeOnASlowDiskSaysSo) {
  const std::string fast = folder_.folder("fast");
  const std::string slow = folder_.folder("slow");
  const SlowMount mount(fast, slow, kSlowly);
  ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
  const Outcome dump =
      kymod_.kymo({"dump", "process", "work", "--dir", slow + "/one", "--deadline", "3s"});
  expect_dump_waited_for_disk(dump, slow + "/one", "The dump ran out of time after ");
}

// kymod's thread still waits for the disk when the dump ends.
TEST_F(FailedVerdictTest, ADumpThatRanOutOfTimeOnADiskThatStallsSaysSo) {
  const MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  disk.be("stalls-at-pages");
  const Outcome dump =
      kymod_.kymo({"dump", "process", "work", "--dir", disk.path() + "/one", "--deadline", "2s"});
  expect_the_disk(dump.err, "kymod", "Write the images to a faster disk or to a tmpfs.");
  disk.be("well");
}

TEST_F(FailedVerdictTest, ADumpThatIsCancelledOnASlowDiskSaysWhatItWaitedFor) {
  const std::string said = dump_and_cancel(kymod_, {"process", "work"});
  expect_the_disk(said, "kymod", "Write the images to a faster disk or to a tmpfs.");
  EXPECT_NE(said.find("the request was cancelled; the process runs on"), std::string::npos) << said;
}

TEST_F(FailedVerdictTest, ADumpWithoutAStreamThatRanOutOfTimeSaysThatCriuWaited) {
  LoopDisk& disk = disk_.emplace(folder_, ",sync");
  if (!disk.mounted() || !disk.slow_down(kymod_.pid(), kBytesASecond)) {
    GTEST_SKIP() << "no loop device here, or no blkio cgroup of version 1";
  }
  const Outcome dump = kymod_.kymo({"dump", "process", "work", "--dir", disk.path() + "/one",
                                    "--no-stream", "--deadline", "4s"});
  // The kernel lets CRIU wait in the write, or before it until older pages are written.
  const bool before = dump.err.find("(dirty pages)") != std::string::npos;
  expect_share(dump.err,
               before ? "For ([0-9]+) % of the standstill the kernel made CRIU wait"
                      : "CRIU waited for the disk for ([0-9]+) % of the",
               "Write the images to a faster disk or to a tmpfs.");
}

TEST_F(FailedVerdictTest, ARestoreThatRanOutOfTimeOnASlowDiskSaysSo) {
  LoopDisk& disk = disk_.emplace(folder_, "");
  if (!disk.mounted()) GTEST_SKIP() << "no loop device here";
  const std::string dir = disk.path() + "/one";
  static_cast<void>(kymod_.kymo_json({"dump", "process", "work", "--dir", dir}));
  wait_until_recorded(dir, {"dump"});
  if (!disk.slow_down(kymod_.pid(), kBytesASecond)) {
    GTEST_SKIP() << "no blkio cgroup of version 1";
  }
  const std::string who = "CRIU or the processes that it restored";
  const std::string advice = "Read the images, and the files that the processes map, from a faster";
  const Outcome restore = kymod_.kymo({"restore", dir, "--deadline", "8s"});
  EXPECT_EQ(restore.exit_code, 1) << restore.out;
  expect_the_disk(restore.err, who, advice);
  EXPECT_NE(restore.err.find("its deadline passed"), std::string::npos) << restore.err;
  EXPECT_EQ(restore.err.find("was cancelled"), std::string::npos) << restore.err;
  const std::string told = kymod_.kymo({"explain", "work"}).out;
  EXPECT_EQ(told.find("The newest restore, at "), 0U) << told;
  EXPECT_NE(told.find("\n  The restore ran out of time after "), std::string::npos) << told;
  expect_the_disk(told, who, advice);
  expect_the_disk(kymod_.kymo_json({"history", "work", "--restores"})["runs"].back()["error"], who,
                  advice);
}

// The error said in which phase CRIU was, and that nothing stood out.
TEST_F(FailedVerdictTest, ADumpWhoseCriuWasStoppedSaysSo) {
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  criu.break_at("Dumping core", SIGSTOP);
  const Outcome dump = kymod.kymo({"dump", "process", "work", "--deadline", "3s"});
  EXPECT_EQ(dump.exit_code, 1) << dump.out;
  expect_share(dump.err, "For ([0-9]+) % of the standstill CRIU itself was stopped", "kill -CONT");
}

TEST_F(FailedVerdictTest, OfAJobThatWasRestoredTheRestoreIsExplained) {
  const std::string dumped = kymod_.kymo_json({"dump", "process", "work"})["directory"];
  std::string told = kymod_.kymo({"explain", "work"}).out;
  EXPECT_EQ(told.find("The newest dump, " + dumped + ":\n  The process stood still for "), 0U)
      << told;
  EXPECT_EQ(kymod_.kymo_json({"explain", "work"})["request"], "dump");
  const json reply = kymod_.kymo_json({"restore", dumped});
  const json why = kymod_.kymo_json({"explain", "work"});
  EXPECT_EQ(why["request"], "restore");
  EXPECT_EQ(why["lines"], reply["verdict"]);
  told = kymod_.kymo({"explain", "work"}).out;
  EXPECT_EQ(told.find("The newest restore, at "), 0U) << told;
  EXPECT_NE(told.find(":\n  The restore took "), std::string::npos) << told;
  EXPECT_NE(told.find("The newest dump: kymo explain " + dumped + "\n"), std::string::npos) << told;
  static_cast<void>(kymod_.kymo_json({"dump", "process", "work", "--leave-running"}));
  EXPECT_EQ(kymod_.kymo({"explain", "work"}).out.find("The newest dump, "), 0U);
}

// CRIU itself writes the images of a container.
TEST_F(FailedVerdictTest, ADumpOfAContainerThatIsCancelledOnASlowDiskSaysWhatItWaitedFor) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  static_cast<void>(runc.start("kymo-web"));
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  expect_the_disk(dump_and_cancel(kymod, {"runc", "kymo-web"}), "CRIU",
                  "Write the images to a faster disk or to a tmpfs.");
}

}  // namespace
}  // namespace kymo::test
