// A checkpoint is restored by a kymod that does not know its job: that of another machine, or after the job was deleted.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"
#include "subjects.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

std::string jobs_of(const Kymod& kymod) {
  return kymod.state() + "/jobs";
}

class MovedCheckpointTest : public testing::Test {
 protected:
  void SetUp() override { KYMO_NEEDS_CRIU(); }

  // Starts a job that counts, has `open_file` open and is called "work". Dumps it with these flags, and copies its
  // checkpoint. Nothing but the copy is left of its kymod.
  void dump_elsewhere(const std::vector<std::string>& flags, const std::string& open_file) {
    Kymod first;
    first.start();
    first_state_ = first.state();
    const std::string script =
        "exec 3<\"$0\"; echo bad >&2; i=0; while :; do i=$((i + 1)); echo $i; sleep 0.05; done";
    job_ = first.kymo_json(
        {"run", "process", "--name", "work", "--", "/bin/sh", "-c", script, open_file});
    ASSERT_TRUE(eventually([&] { return number_in(job_["stdout_path"]) > 2; }));
    std::vector<std::string> words{"dump", "process", "work", "--dir", first.path("c")};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome dumped = first.kymo(words);
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    last_ = number_in(job_["stdout_path"]);
    wait_until_recorded(first.path("c"), {"dump"});
    ASSERT_EQ(run({"cp", "-a", first.path("c"), checkpoint()}).exit_code, 0);
  }

  static int number_in(const std::string& path) { return std::atoi(last_line_in(path).c_str()); }
  [[nodiscard]] std::string checkpoint() const { return folder_.path() + "/moved"; }

  // Expects that the job runs, and counts on in the state directory of this kymod.
  void expect_counts_on(const Kymod& kymod, const std::string& name) const {
    const nlohmann::json job = kymod.job(name);
    EXPECT_EQ(job["state"], "running");
    EXPECT_EQ(job["pid"], job_["pid"]);
    const std::string out = job["stdout_path"];
    EXPECT_TRUE(out.starts_with(jobs_of(kymod) + "/")) << out;
    EXPECT_TRUE(eventually([&] { return number_in(out) > last_; })) << read_file(out);
  }

  // Restores the copy with another kymod, then dumps the process and restores it once more.
  void expect_moved(const std::vector<std::string>& flags) {
    ASSERT_NO_FATAL_FAILURE(dump_elsewhere(flags, "/etc/passwd"));
    Kymod second;
    second.start();
    const Outcome checked = second.kymo({"check", checkpoint(), "--criu", criu_path()});
    EXPECT_EQ(checked.exit_code, 0) << checked.out;
    const Outcome restored = second.kymo({"restore", checkpoint()});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_NE(restored.err.find("kymo attach work shows what it writes from now on"),
              std::string::npos)
        << restored.err;
    expect_counts_on(second, "work");
    EXPECT_EQ(second.job("work")["id"], job_["id"]) << "it is the same job on each machine";
    EXPECT_FALSE(fs::exists(first_state_)) << "nothing is made where the first kymod had its files";

    const Outcome dumped = second.kymo({"dump", "process", "work", "--dir", second.path("again")});
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    last_ = number_in(second.job("work")["stdout_path"]);
    const Outcome again = second.kymo({"restore", second.path("again")});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.err, "") << "its output is here now";
    expect_counts_on(second, "work");
    EXPECT_EQ(second.kymo({"kill", "work", "--signal", "KILL", "--wait"}).exit_code, 0);
    const Outcome attached = second.kymo({"attach", "work"});
    EXPECT_EQ(attached.exit_code, 128 + SIGKILL) << attached.err;
    EXPECT_NE(attached.out.find("\n" + std::to_string(last_ + 1) + "\n"), std::string::npos);
    // A child may live on for a moment, and its session has the number of the pid.
    ASSERT_TRUE(eventually([&] {
      return run({"pgrep", "-s", job_["pid"].dump()}).exit_code == 1;
    }));
    // The copy is still good, and its job is known now.
    const Outcome third = second.kymo({"restore", checkpoint()});
    EXPECT_EQ(third.exit_code, 0) << third.err;
    EXPECT_EQ(second.kymo_json({"ps"}).size(), 1U);
  }

  const TemporaryDirectory folder_;
  nlohmann::json job_;
  std::string first_state_;
  int last_ = 0;  // what the job had counted to at its dump
};

TEST_F(MovedCheckpointTest, IsRestoredByAnotherKymodWithNewOutputFiles) {
  expect_moved({"--no-stream"});
}

TEST_F(MovedCheckpointTest, IsRestoredByAnotherKymodIfTheImagesComeThroughIt) {
  expect_moved({"--compression", "zstd"});
}

TEST_F(MovedCheckpointTest, LeavesNoJobAndNoFileIfItsRestoreFails) {
  const std::string open = folder_.file("open", "text\n");
  ASSERT_NO_FATAL_FAILURE(dump_elsewhere({}, open));
  fs::rename(open, open + ".away");
  Kymod second;
  second.start();
  const Outcome refused = second.kymo({"restore", checkpoint()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("a file of the checkpoint does not exist"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(second.kymo_json({"ps"}).empty());
  EXPECT_TRUE(!fs::exists(jobs_of(second)) || fs::is_empty(jobs_of(second)));
  fs::rename(open + ".away", open);
  const Outcome restored = second.kymo({"restore", checkpoint()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  expect_counts_on(second, "work");
}

TEST_F(MovedCheckpointTest, GetsAnotherNameIfItsOwnIsTaken) {
  ASSERT_NO_FATAL_FAILURE(dump_elsewhere({}, "/etc/passwd"));
  Kymod second;
  second.start();
  const nlohmann::json other =
      second.kymo_json({"run", "process", "--name", "work", "--", "/bin/sleep", "1000"});
  const Outcome restored = second.kymo({"restore", checkpoint()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  expect_counts_on(second, "work-1");
  EXPECT_EQ(second.job("work")["pid"], other["pid"]);
}

// Whoever can write a checkpoint.json that root restores must not choose where kymod makes files.
TEST_F(MovedCheckpointTest, MakesNoFileOutsideOfTheStateDirectory) {
  ASSERT_NO_FATAL_FAILURE(dump_elsewhere({}, "/etc/passwd"));
  nlohmann::json record = nlohmann::json::parse(read_file(checkpoint() + "/checkpoint.json"));
  record["job"]["id"] = "../../evil";
  std::ofstream(checkpoint() + "/checkpoint.json") << record.dump();
  Kymod second;
  second.start();
  const Outcome refused = second.kymo({"restore", checkpoint()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_FALSE(fs::exists(second.path("evil")));
  EXPECT_FALSE(fs::exists(first_state_));
  EXPECT_TRUE(second.kymo_json({"ps"}).empty());
}

TEST_F(MovedCheckpointTest, ACopyIsRestoredAfterItsJobWasDeleted) {
  Kymod kymod;
  kymod.start();
  job_ = kymod.churn(4, "work");
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string dir = dump["directory"];
  wait_until_recorded(dir, {"dump"});
  ASSERT_EQ(run({"cp", "-a", dir, checkpoint()}).exit_code, 0);
  ASSERT_EQ(kymod.kymo({"delete", "work", "--all"}).exit_code, 0);
  const Outcome restored = kymod.kymo({"restore", checkpoint()});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(kymod.goes_on(kymod.job("work")));
}

}  // namespace
}  // namespace kymo::test
