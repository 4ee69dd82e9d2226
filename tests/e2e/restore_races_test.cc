// What can happen during a restore: its job is deleted, its disk is full, or the size of files is limited.

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
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RestoreRacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_ = std::make_unique<Kymod>(std::vector<std::string>{"--criu", criu_.path()});
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
  // Restores this directory, and calls kymo with these words while the restore runs, when CRIU is `at` this notification.
  [[nodiscard]] Outcome call_during_a_restore(const std::string& directory,
                                              const std::vector<std::string>& words,
                                              const std::string& at = "post-restore") const {
    criu_.break_at(at, SIGSTOP);
    auto restored = std::async(std::launch::async, [&] {
      return kymod_->kymo({"restore", directory});
    });
    const pid_t stopped = criu_.stopped();
    EXPECT_NE(stopped, 0);
    const Outcome called = kymod_->kymo(words);
    criu_.mend();
    kill(stopped, SIGCONT);
    const Outcome outcome = restored.get();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return called;
  }
  void expect_all_is_there() const {
    EXPECT_EQ(kymod_->job("work")["state"], "running");
    EXPECT_TRUE(kymod_->goes_on(job_)) << read_file(job_["stderr_path"]);
  }

  const BreakableCriu criu_;
  std::unique_ptr<Kymod> kymod_;
  json job_;
};

TEST_F(RestoreRacesTest, ADeletionOfACheckpointThatIsRestoredThroughALinkIsRefused) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  const std::string link = kymod_->path("link");
  fs::create_directory_symlink(dir(1), link);
  const Outcome deleted = call_during_a_restore(link, {"delete", dir(1)});
  EXPECT_EQ(deleted.exit_code, 1) << deleted.out;
  EXPECT_NE(deleted.err.find("a dump or restore uses " + dir(1)), std::string::npos) << deleted.err;
  EXPECT_TRUE(fs::exists(dir(1) + "/images/inventory.img"));
  expect_all_is_there();
}

TEST_F(RestoreRacesTest, WhileOneIsMadeEachOtherOfTheSameCheckpointIsRefusedInOneLine) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  wait_until_recorded(dir(1), {"dump"});
  fs::copy(dir(1), dir(2), fs::copy_options::recursive);
  const std::string link = kymod_->path("link");
  fs::create_directory_symlink(dir(1), link);
  // Before its processes are there, only kymod's claims can refuse the others.
  const std::vector<std::pair<std::string, std::string>> others{
      {dir(1), "restore " + dir(1) + ": another request uses it"},
      {link, "restore " + link + ": another request uses it"},
      {dir(2), "/images: another restore that is running needs the same pids"}};
  for (const auto& [other, why] : others) {
    SCOPED_TRACE(other);
    const Outcome refused = call_during_a_restore(dir(1), {"restore", other}, "pre-restore");
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    expect_all_is_there();
    ASSERT_EQ(kymod_->kymo({"delete", dir(1)}).exit_code, 0);
    static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  }
}

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

TEST_F(RestoreRacesTest, ADeletionOfTheJobAndItsCheckpointsIsRefusedAndDeletesNothing) {
  static_cast<void>(
      kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1), "--leave-running"}));
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(2)}));
  const Outcome deleted = call_during_a_restore(dir(2), {"delete", "work", "--all"});
  EXPECT_EQ(deleted.exit_code, 1) << deleted.out;
  EXPECT_NE(deleted.err.find("delete job work: it is being restored: wait for that to end"),
            std::string::npos)
      << deleted.err;
  for (const int number : {1, 2}) {
    EXPECT_TRUE(fs::exists(dir(number) + "/images/inventory.img")) << number;
  }
  expect_all_is_there();
}

TEST_F(RestoreRacesTest, ADeletionOfTheJobWhoseCopyIsRestoredIsRefused) {
  static_cast<void>(kymod_->kymo_json({"dump", "process", "work", "--dir", dir(1)}));
  wait_until_recorded(dir(1), {"dump"});
  fs::copy(dir(1), dir(2), fs::copy_options::recursive);
  ASSERT_EQ(kymod_->kymo({"delete", dir(1)}).exit_code, 0);
  const Outcome deleted = call_during_a_restore(dir(2), {"delete", "work"});
  EXPECT_EQ(deleted.exit_code, 1) << deleted.out;
  EXPECT_NE(deleted.err.find("it is being restored"), std::string::npos) << deleted.err;
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

// It said "its pid is in use by 'kymo-churn'; end that process first", as if a stranger had taken the pid.
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
