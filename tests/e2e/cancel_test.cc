// A dump or restore that is cancelled, by another client and by Ctrl-C in its own: what was to be
// dumped runs on, of a restore nothing is left, and neither counts as a failure.

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "probe/directory_bytes.h"
#include "probe/process.h"
#include "programs.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The counter's value now, by the name of its column.
std::uint64_t count_of(const Kymod& kymod, const std::string& metric, const std::string& result) {
  for (const json& one : kymod.kymo_json({"metrics"})) {
    for (const json& value : one["values"]) {
      if (value["column"] == metric + "[" + result + "]") return value["value"];
    }
  }
  ADD_FAILURE() << "no " << metric << "[" << result << "]";
  return 0;
}

// A process of 64 MiB, and a disk that takes many seconds for as much.
class CancelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    mount_ = std::make_unique<SlowMount>(folder_.folder("disk"), folder_.folder("slow"), "12M");
    ASSERT_TRUE(mount_->mounted()) << "bindfs does not work here";
    kymod_.start();
    job_ = kymod_.churn(64, "work");
  }
  [[nodiscard]] std::string slow(const std::string& name) const {
    return folder_.path() + "/slow/" + name;
  }
  // Waits until the memory of the job is being written, which takes seconds more.
  static void wait_for_memory(const std::string& dir) {
    EXPECT_TRUE(eventually([&] {
      const Result<std::uint64_t> bytes = probe::directory_bytes(dir + "/images.partial");
      return bytes.ok() && *bytes > std::uint64_t{4} << 20U;
    }));
  }
  void expect_it_runs_on(const std::string& dir) const {
    EXPECT_TRUE(kymod_.goes_on(job_));
    EXPECT_EQ(kymod_.job("work")["state"], "running");
    EXPECT_FALSE(fs::exists(dir + "/images"));
    EXPECT_FALSE(fs::exists(dir + "/images.partial"));
    EXPECT_EQ(count_of(kymod_, "dumps", "error"), 0U);
    EXPECT_EQ(count_of(kymod_, "dumps", "cancelled"), 1U);
  }

  TemporaryDirectory folder_;
  std::unique_ptr<SlowMount> mount_;
  std::unique_ptr<SlowMount> reads_;
  Kymod kymod_;
  json job_;
};

TEST_F(CancelTest, AnotherClientEndsADumpAndTheProcessRunsOn) {
  Outcome dump;
  std::thread client([&] {
    dump = kymod_.kymo({"dump", "process", "work", "--dir", slow("one")});
  });
  wait_for_memory(slow("one"));
  const Outcome cancelled = kymod_.kymo({"cancel", "work"});
  client.join();
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.err;
  EXPECT_NE(cancelled.out.find("the dump of job work was cancelled"), std::string::npos)
      << cancelled.out;
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_NE(dump.err.find("the request was cancelled; the process runs on"), std::string::npos)
      << dump.err;
  expect_it_runs_on(slow("one"));
  const Outcome again = kymod_.kymo({"cancel", "work"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("no dump or restore of it is running"), std::string::npos) << again.err;
}

TEST_F(CancelTest, CtrlCInTheClientEndsADumpAndTheProcessRunsOn) {
  const Outcome dump =
      run({"timeout", "--foreground", "--preserve-status", "--signal", "INT", "2", KYMO_PROGRAM,
           "--socket", kymod_.socket(), "dump", "process", "work", "--dir", slow("one")});
  EXPECT_EQ(dump.exit_code, 130) << dump.err;
  EXPECT_NE(dump.err.find("cancelling: waiting for kymod"), std::string::npos) << dump.err;
  EXPECT_NE(dump.err.find("the request was cancelled; the process runs on"), std::string::npos)
      << dump.err;
  expect_it_runs_on(slow("one"));
}

TEST_F(CancelTest, ARestoreLeavesNothingOfItBehindAndTheImagesWhole) {
  const std::string fast = folder_.folder("checkpoints");
  const std::string dir = folder_.folder("slowly-read");
  reads_ = std::make_unique<SlowMount>(fast, dir, "8M", SlowMount::Slow::reading);
  ASSERT_TRUE(reads_->mounted());
  ASSERT_EQ(kymod_.kymo({"dump", "process", "work", "--dir", fast + "/one"}).exit_code, 0);
  const pid_t pid = job_["pid"];
  Outcome restore;
  std::thread client([&] { restore = kymod_.kymo({"restore", dir + "/one"}); });
  EXPECT_TRUE(eventually([&] { return probe::read_process(pid).ok(); })) << "nothing is restored";
  const Outcome cancel = kymod_.kymo({"cancel", "work"});
  client.join();
  EXPECT_EQ(cancel.exit_code, 0) << cancel.err;
  EXPECT_EQ(restore.exit_code, 1) << "the restore was quicker";
  EXPECT_NE(restore.err.find("the request was cancelled"), std::string::npos) << restore.err;
  EXPECT_FALSE(probe::read_process(pid).ok()) << "something of the restore is left";
  EXPECT_EQ(kymod_.job("work")["state"], "dumped");
  EXPECT_EQ(count_of(kymod_, "restores", "error"), 0U);
  EXPECT_EQ(count_of(kymod_, "restores", "cancelled"), 1U);
  const Outcome whole = kymod_.kymo({"restore", kymod_.job("work")["last_checkpoint"]});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_TRUE(kymod_.goes_on(kymod_.job("work")));
}

// kymod read them itself, as root, and did not hear of the cancellation until it had.
TEST_F(CancelTest, ARestoreWhoseChecksumsAreComparedByAProcessWithoutRights) {
  const std::string fast = folder_.folder("checkpoints");
  const std::string dir = folder_.folder("slowly-read");
  reads_ = std::make_unique<SlowMount>(fast, dir, "8M", SlowMount::Slow::reading);
  ASSERT_TRUE(reads_->mounted());
  ASSERT_EQ(
      kymod_.kymo({"dump", "process", "work", "--checksums", "--dir", fast + "/one"}).exit_code, 0);
  Outcome restore;
  std::thread client([&] {
    restore = run({KYMO_PROGRAM, "--socket", kymod_.socket(), "restore", dir + "/one"});
  });
  std::string status;
  const std::string pages = dir + "/one/images/pages-1.img";
  EXPECT_TRUE(eventually([&] { return !(status = status_of_reader(pages)).empty(); }));
  EXPECT_EQ(run({"pkill", "-INT", "-f", "restore " + dir + "/one"}).exit_code, 0);
  client.join();
  EXPECT_TRUE(has_no_rights(status)) << status;
  EXPECT_EQ(restore.exit_code, 130) << restore.err;
  EXPECT_NE(restore.err.find("the request was cancelled"), std::string::npos) << restore.err;
  EXPECT_EQ(kymod_.job("work")["state"], "dumped");
  EXPECT_FALSE(fs::exists(fast + "/one/recordings/restore.tsv"));
  EXPECT_TRUE(eventually([&] { return status_of_reader(pages).empty(); })) << "it reads on";
}

}  // namespace
}  // namespace kymo::test
