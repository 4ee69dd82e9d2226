// A dump or restore that is cancelled by another client or by Ctrl-C in its own. A process that was
// being dumped must go on, a cancelled restore must leave nothing, and neither counts as a failure.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "base/proc/process.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The current value of the counter in the column of this metric and result.
std::uint64_t count_of(const Kymod& kymod, const std::string& metric, const std::string& result) {
  for (const json& one : kymod.kymo_json({"metrics"})) {
    for (const json& value : one["values"]) {
      if (value["column"] == metric + "[" + result + "]") return value["value"];
    }
  }
  ADD_FAILURE() << "no " << metric << "[" << result << "]";
  return 0;
}

// In these tests, CRIU is stopped in the middle of a request. Then the request is cancelled.
class CancelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    job_ = kymod_.churn(16, "work");
  }
  [[nodiscard]] std::string dir() const { return kymod_.path("one"); }
  void stop_when(const std::string& mark) const { criu_.break_at(mark, SIGSTOP); }
  void wait_for_stop() const {
    EXPECT_NE(criu_.stopped(), 0) << kymod_.log();
    criu_.mend();
  }
  // Runs `kymo WORDS` so that interrupt_client() can interrupt it.
  [[nodiscard]] Outcome run_as_client(const std::vector<std::string>& words) const {
    std::vector<std::string> command{"sh",           "-c",         R"(echo $$ >"$0"; exec "$@")",
                                     client_pid(),   KYMO_PROGRAM, "--socket",
                                     kymod_.socket()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  }
  void interrupt_client() const { EXPECT_EQ(kill(std::stoi(read_file(client_pid())), SIGINT), 0); }
  [[nodiscard]] std::string client_pid() const { return folder_.path() + "/client"; }
  void expect_it_runs_on() const {
    EXPECT_TRUE(kymod_.goes_on(job_));
    EXPECT_EQ(kymod_.job("work")["state"], "running");
    EXPECT_FALSE(fs::exists(dir() + "/images"));
    EXPECT_FALSE(fs::exists(dir() + "/images.partial"));
    EXPECT_EQ(count_of(kymod_, "dumps", "error"), 0U);
    EXPECT_EQ(count_of(kymod_, "dumps", "cancelled"), 1U);
  }

  TemporaryDirectory folder_;
  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  json job_;
};

TEST_F(CancelTest, AnotherClientEndsADumpAndTheProcessRunsOn) {
  stop_when("Dumping pages (type");
  Outcome dump;
  std::thread client([&] { dump = kymod_.kymo({"dump", "process", "work", "--dir", dir()}); });
  wait_for_stop();
  const Outcome cancelled = kymod_.kymo({"cancel", "work"});
  client.join();
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.err;
  EXPECT_NE(cancelled.out.find("the dump of job work was cancelled"), std::string::npos)
      << cancelled.out;
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_NE(dump.err.find("the request was cancelled; the process runs on"), std::string::npos)
      << dump.err;
  expect_it_runs_on();
  const Outcome again = kymod_.kymo({"cancel", "work"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("no dump or restore of it is running"), std::string::npos) << again.err;
}

TEST_F(CancelTest, CtrlCInTheClientEndsADumpAndTheProcessRunsOn) {
  stop_when("Dumping pages (type");
  Outcome dump;
  std::thread client([&] { dump = run_as_client({"dump", "process", "work", "--dir", dir()}); });
  wait_for_stop();
  interrupt_client();
  client.join();
  EXPECT_EQ(dump.exit_code, 130) << dump.err;
  EXPECT_NE(dump.err.find("cancelling: waiting for kymod"), std::string::npos) << dump.err;
  EXPECT_NE(dump.err.find("the request was cancelled; the process runs on"), std::string::npos)
      << dump.err;
  expect_it_runs_on();
}

// Nobody is told how the dump ends, but it goes on, and its checkpoint is listed.
TEST_F(CancelTest, AClientThatIsKilledDuringADumpLosesNothing) {
  int made = 0;
  for (const char* mark : {"pre-dump", "Dumping pages (type", "post-dump", "Dumping finished"}) {
    SCOPED_TRACE(mark);
    const std::string dir = kymod_.path("c" + std::to_string(++made));
    stop_when(mark);
    std::thread client([&] {
      static_cast<void>(run_as_client({"dump", "process", "work", "--dir", dir}));
    });
    const pid_t criu = criu_.stopped();
    EXPECT_NE(criu, 0) << kymod_.log();
    criu_.mend();
    EXPECT_EQ(kill(std::stoi(read_file(client_pid())), SIGKILL), 0);
    client.join();
    if (criu != 0) kill(criu, SIGCONT);
    EXPECT_TRUE(eventually([&] {
      const json newest = kymod_.kymo_json({"checkpoints"}).back();
      return newest["directory"] == dir && newest["state"] == "complete";
    })) << kymod_.log();
    EXPECT_EQ(kymod_.job("work")["state"], "dumped");
    static_cast<void>(kymod_.kymo_json({"restore", dir}));
    EXPECT_TRUE(kymod_.goes_on(kymod_.job("work")));
  }
}

TEST_F(CancelTest, ARestoreLeavesNothingOfItBehindAndTheImagesWhole) {
  ASSERT_EQ(kymod_.kymo({"dump", "process", "work", "--dir", dir()}).exit_code, 0);
  const pid_t pid = job_["pid"];
  stop_when("Running post-restore scripts");
  Outcome restore;
  std::thread client([&] { restore = kymod_.kymo({"restore", dir()}); });
  wait_for_stop();
  EXPECT_TRUE(probe::read_process(pid).ok()) << "the process was not restored";
  const Outcome cancel = kymod_.kymo({"cancel", "work"});
  client.join();
  EXPECT_EQ(cancel.exit_code, 0) << cancel.err;
  EXPECT_EQ(restore.exit_code, 1);
  EXPECT_NE(restore.err.find("the request was cancelled"), std::string::npos) << restore.err;
  EXPECT_FALSE(probe::read_process(pid).ok()) << "a process of the cancelled restore is left";
  EXPECT_EQ(kymod_.job("work")["state"], "dumped");
  EXPECT_EQ(count_of(kymod_, "restores", "error"), 0U);
  EXPECT_EQ(count_of(kymod_, "restores", "cancelled"), 1U);
  const Outcome whole = kymod_.kymo({"restore", kymod_.job("work")["last_checkpoint"]});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_TRUE(kymod_.goes_on(kymod_.job("work")));
}

TEST_F(CancelTest, ARestoreWhoseChecksumsAreComparedByAProcessWithoutRights) {
  const std::string fast = folder_.folder("checkpoints");
  const std::string dir = folder_.folder("slowly-read");
  // At this rate, reading 16 MiB takes longer than a cancellation on any machine.
  const SlowMount mount(fast, dir, "200k", SlowMount::Slow::reading);
  ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
  ASSERT_EQ(
      kymod_.kymo({"dump", "process", "work", "--checksums", "--dir", fast + "/one"}).exit_code, 0);
  Outcome restore;
  std::thread client([&] { restore = run_as_client({"restore", dir + "/one"}); });
  std::string status;
  const std::string pages = dir + "/one/images/pages-1.img";
  EXPECT_TRUE(eventually([&] { return !(status = status_of_reader(pages)).empty(); }));
  interrupt_client();
  client.join();
  EXPECT_TRUE(has_no_rights(status)) << status;
  EXPECT_EQ(restore.exit_code, 130) << restore.err;
  EXPECT_NE(restore.err.find("the request was cancelled"), std::string::npos) << restore.err;
  EXPECT_EQ(kymod_.job("work")["state"], "dumped");
  EXPECT_FALSE(fs::exists(fast + "/one/recordings/restore.tsv"));
  EXPECT_TRUE(eventually([&] { return status_of_reader(pages).empty(); }))
      << "the reader still reads";
}

}  // namespace
}  // namespace kymo::test
