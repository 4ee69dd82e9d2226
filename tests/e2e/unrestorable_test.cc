// A process that no restore could bring back is refused before its dump, which would end it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/proc/process.h"
#include "base/spawn.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class UnrestorableTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
  }
  void TearDown() override {
    if (outer_ <= 0) return;
    if (inner_ != outer_) kill(inner_, SIGKILL);
    kill(outer_, SIGKILL);
    waitpid(outer_, nullptr, 0);
  }

  // Starts a program that counts in a file, with these words before it. It runs `first` in its shell before.
  void start(std::vector<std::string> words, bool forks, const std::string& first = "") {
    const std::vector<std::string> rest{"setsid", "/bin/sh", "-c",
                                        "exec </dev/null >/dev/null 2>&1; " + first +
                                            "i=0; while :; do "
                                            "i=$((i+1)); echo $i >\"$0\"; sleep 0.05; done",
                                        file()};
    words.insert(words.end(), rest.begin(), rest.end());
    const std::string program = words.front();
    // Not the log of this test, which grows meanwhile: CRIU compares the size of what is open.
    const Result<pid_t> started = spawn({.file = program,
                                         .words = std::move(words),
                                         .descriptors = {kDevNull, kDevNull, kDevNull}});
    ASSERT_TRUE(started) << started.error().message;
    outer_ = *started;
    ASSERT_TRUE(eventually([&] {
      const std::vector<pid_t> tree = probe::process_tree(outer_);
      inner_ = forks && tree.size() > 1 ? tree[1] : outer_;
      return number() > 0 && (inner_ != outer_ || !forks);
    }));
  }
  [[nodiscard]] Outcome dump(const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> words{"dump", "process", std::to_string(inner_), "--dir",
                                   checkpoint()};
    words.insert(words.end(), flags.begin(), flags.end());
    return kymod_.kymo(words);
  }
  // Its dump must be refused by this failure, and it must run on.
  void expect_refused(const std::string& failure) const {
    const Outcome refused = dump();
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("(failure " + failure + ")"), std::string::npos) << refused.err;
    EXPECT_TRUE(counts());
  }
  [[nodiscard]] int number() const { return std::atoi(read_file(file()).c_str()); }
  [[nodiscard]] bool counts() const {
    const int before = number();
    return eventually([&] { return number() > before; });
  }
  [[nodiscard]] std::string file() const { return kymod_.path("count"); }
  [[nodiscard]] std::string checkpoint() const { return kymod_.path("checkpoint"); }

  Kymod kymod_;
  pid_t outer_ = 0;  // our child
  pid_t inner_ = 0;  // what is dumped: a child of it, if that forks
};

// It was dumped, ended, and refused at each restore: "its pid 1 is in use by 'init'; end that process first".
TEST_F(UnrestorableTest, AProcessWithAPidNamespaceIsRefusedAndCriuItselfRestoresIt) {
  start({"unshare", "--pid", "--fork"}, true);
  if (HasFailure()) return;
  expect_refused("pid-taken");

  const Outcome forced = dump({"--force"});
  ASSERT_EQ(forced.exit_code, 0) << forced.err;
  const Outcome checked = kymod_.kymo({"check", checkpoint()});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_NE(checked.out.find("have a pid namespace of their own"), std::string::npos)
      << checked.out;
  const Outcome restored = kymod_.kymo({"restore", checkpoint()});
  EXPECT_EQ(restored.exit_code, 1);
  const std::string images = checkpoint() + "/images";
  EXPECT_NE(restored.err.find("criu restore --images-dir " + images + " --restore-detached"),
            std::string::npos)
      << restored.err;
  const std::string pid_file = kymod_.path("pid");
  const Outcome by_criu = run({criu_path(), "restore", "--images-dir", images, "--restore-detached",
                               "--work-dir", kymod_.path(""), "--pidfile", pid_file});
  ASSERT_EQ(by_criu.exit_code, 0) << by_criu.err;
  inner_ = std::atoi(read_file(pid_file).c_str());
  EXPECT_TRUE(counts());
}

TEST_F(UnrestorableTest, AProcessWithAUserNamespaceIsRefused) {
  start({"unshare", "--user", "--map-root-user"}, false);
  if (HasFailure()) return;
  expect_refused("procfs-restore");
}

// The dump was made, and ended it. No restore succeeded, and each said that a process has its pid, which none had: the kernel
// gives nobody the number of a session that a process is in.
TEST_F(UnrestorableTest, AnOrphanInItsSessionKeepsItsPidAndIsNamedOnBothSides) {
  start({}, false, "(sleep 600 & echo $! >\"$0.orphan\"); ");
  if (HasFailure()) return;
  const pid_t orphan = std::atoi(read_file(file() + ".orphan").c_str());
  const std::string named =
      "process " + std::to_string(orphan) + " sleep, whose session is " + std::to_string(inner_);
  const Outcome foreseen = kymod_.kymo({"check", "process", std::to_string(inner_)});
  EXPECT_EQ(foreseen.exit_code, 1) << foreseen.out;
  EXPECT_NE(foreseen.out.find(named), std::string::npos) << foreseen.out;
  expect_refused("pid-taken");

  ASSERT_EQ(dump({"--force"}).exit_code, 0);
  ASSERT_EQ(waitpid(outer_, nullptr, 0), outer_);
  const Outcome checked = kymod_.kymo({"check", checkpoint()});
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find(named), std::string::npos) << checked.out;
  const Outcome early = kymod_.kymo({"restore", checkpoint()});
  EXPECT_EQ(early.exit_code, 1) << early.out;
  EXPECT_NE(early.err.find("as the session of process " + std::to_string(orphan) + " (sleep)"),
            std::string::npos)
      << early.err;
  ASSERT_EQ(kill(orphan, SIGKILL), 0);
  const Outcome restored = kymod_.kymo({"restore", checkpoint()});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts());
}

}  // namespace
}  // namespace kymo::test
