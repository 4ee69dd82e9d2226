// What stands in the way of a restore: another one, a job that runs, a disk that takes no note, a
// limit of the size of files.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/proc/process.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RestoreRacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_ = std::make_unique<Kymod>();
    kymod_->start();
    job_ = kymod_->churn(8, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(pid(), SIGKILL);
  }

  [[nodiscard]] pid_t pid() const { return job_["pid"].get<pid_t>(); }
  [[nodiscard]] std::string dir(int number) const {
    return kymod_->path("c" + std::to_string(number));
  }
  void expect_all_is_there() const {
    EXPECT_EQ(kymod_->job("work")["state"], "running");
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  }

  std::unique_ptr<Kymod> kymod_;
  json job_;
};

TEST_F(RestoreRacesTest, OfTwoAtTheSameInstantExactlyOneGoes) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  std::vector<std::future<Outcome>> restores;
  for (int i = 0; i < 2; ++i) {
    restores.push_back(std::async(std::launch::async, [&] {
      return kymod_->kymo({"restore", dir(1)});
    }));
  }
  std::vector<Outcome> ended;
  for (std::future<Outcome>& restore : restores) ended.push_back(restore.get());
  if (ended[0].exit_code != 0) std::swap(ended[0], ended[1]);
  EXPECT_EQ(ended[0].exit_code, 0) << ended[0].err;
  EXPECT_EQ(ended[1].exit_code, 1) << ended[1].out;
  EXPECT_EQ(std::count(ended[1].err.begin(), ended[1].err.end(), '\n'), 1) << ended[1].err;
  EXPECT_EQ(kymod_->kymo_json({"ps"}).size(), 1U);
  expect_all_is_there();
}

TEST_F(RestoreRacesTest, WithoutRoomForItsNoteARestoreIsRefused) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  const std::string notes = kymod_->state() + "/restoring";
  fs::remove_all(notes);
  // A file in place of the folder, because root could write to any folder.
  static_cast<void>(std::ofstream(notes));
  const Outcome refused = kymod_->kymo({"restore", dir(1)});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("cannot write"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("nothing was restored"), std::string::npos) << refused.err;
  EXPECT_FALSE(probe::process_lives(pid(), 0));
  EXPECT_EQ(kymod_->job("work")["state"], "dumped");
  fs::remove(notes);
  static_cast<void>(kymod_->kymo_json({"restore", dir(1)}));
  expect_all_is_there();
}

TEST_F(RestoreRacesTest, AFileThatMayNotGrowIsAnErrorOfTheRequestAlone) {
  static_cast<void>(
      kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1), "--leave-running"}));
  constexpr rlim_t kFew = 2 << 20;
  const rlimit64 limit{kFew, kFew};
  ASSERT_EQ(prlimit64(kymod_->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  const Outcome failed = kymod_->kymo({"dump", "process", "work", "--dir", dir(2)});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  EXPECT_NE(failed.err.find("File too large"), std::string::npos) << failed.err;
  EXPECT_EQ(kymod_->kymo({"ps"}).exit_code, 0) << "kymod ended";
  expect_all_is_there();
}

// It said "its pid is in use by 'kymo-churn'; end that process first", as if a stranger had taken
// the pid.
TEST_F(RestoreRacesTest, OfAJobThatRunsItSaysThatItRuns) {
  const json dump = kymod_->kymo_json({"dump", "process", "work", "--leave-running"});
  const Outcome refused = kymod_->kymo({"restore", dump["directory"]});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  const std::string runs = "job work runs already (its pid " + std::to_string(pid());
  EXPECT_NE(refused.err.find(runs), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("kymo kill work --wait"), std::string::npos) << refused.err;
  const Outcome as_json = kymod_->kymo({"restore", dump["directory"], "--json"});
  EXPECT_EQ(json::parse(as_json.out)["failure"]["id"], "pid-taken") << as_json.out;
  ASSERT_EQ(kymod_->kymo({"kill", "work", "--signal", "KILL", "--wait"}).exit_code, 0);
  EXPECT_EQ(kymod_->kymo({"restore", dump["directory"]}).exit_code, 0);
}

}  // namespace
}  // namespace kymo::test
