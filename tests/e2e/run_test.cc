// What a program gets that `kymo run process` starts: docs/jobs.md, "What the program of a job gets".

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
  }

  // What a shell with this script prints as a job that is started with these flags. `before` is a command that runs kymo.
  [[nodiscard]] std::string said(const std::vector<std::string>& flags, const std::string& script,
                                 std::vector<std::string> before = {}) const {
    std::vector<std::string> words{KYMO_PROGRAM, "--socket", kymod_.socket(), "run",
                                   "process",    "--name",   "said"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    before.insert(before.end(), words.begin(), words.end());
    const Outcome started = run(before);
    EXPECT_EQ(started.exit_code, 0) << started.err;
    const Outcome attached = kymod_.kymo({"attach", "said"});
    EXPECT_EQ(kymod_.kymo({"delete", "said"}).exit_code, 0);
    return attached.out;
  }

  Kymod kymod_;
};

TEST_F(RunTest, TheProgramGetsTheUserOfKymodAndTheEnvironmentAndFolderOfKymo) {
  const std::string folder = fs::current_path();
  EXPECT_EQ(said({}, "id -u; pwd; echo \"$A\"", {"/usr/bin/env", "A=of kymo"}),
            std::to_string(geteuid()) + "\n" + folder + "\nof kymo\n");
  EXPECT_EQ(said({}, "readlink /proc/$$/fd/0; test $(ps -o sid= -p $$) = $$ && echo leads"),
            "/dev/null\nleads\n");
  EXPECT_EQ(said({}, "umask"), run({"/bin/sh", "-c", "umask"}).out)
      << "kymod has that of this test";
}

TEST_F(RunTest, EnvAndWorkdirGiveItOthers) {
  const TemporaryDirectory folder;
  const std::string path = fs::canonical(folder.path());
  EXPECT_EQ(said({"-e", "A=1", "--env", "B=two words=x", "--env", "A=3", "--workdir", path},
                 "pwd; echo \"$A\"; echo \"$B\"; env | grep -c ^A=", {"/usr/bin/env", "A=of kymo"}),
            path + "\n3\ntwo words=x\n1\n");
  folder.folder("sub");
  EXPECT_EQ(said({"-w", "sub"}, "pwd", {"/usr/bin/env", "-C", path}), path + "/sub\n");
}

TEST_F(RunTest, WhatIsNoVariableOrNoFolderIsRefused) {
  for (const char* wrong : {"A", "=A"}) {
    const Outcome refused = kymod_.kymo({"run", "process", "--env", wrong, "--", "/bin/true"});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_NE(refused.err.find("give NAME=VALUE"), std::string::npos) << refused.err;
  }
  const Outcome user = kymod_.kymo({"run", "process", "--user", "www", "--", "/bin/true"});
  EXPECT_EQ(user.exit_code, 2);
  EXPECT_NE(user.err.find("setpriv --reuid=www --regid=www"), std::string::npos) << user.err;
  const Outcome refused = kymod_.kymo({"run", "process", "-w", "/nowhere", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("/nowhere"), std::string::npos) << refused.err;
  EXPECT_TRUE(kymod_.kymo_json({"ps"}).empty());
}

// The page says so, instead of an option for the user.
TEST_F(RunTest, SetprivRunsItAsAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start programs of other users";
  const Outcome started =
      kymod_.kymo({"run", "process", "--name", "user", "--", "setpriv", "--reuid", "65534",
                   "--regid", "65534", "--clear-groups", "--", "/bin/sh", "-c", "id -u; id -g"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  EXPECT_EQ(kymod_.kymo({"attach", "user"}).out, "65534\n65534\n");
}

// A job that ends at once often did so before kymod had stored its pid: of 60 such jobs, 35 had no exit code.
TEST_F(RunTest, AJobThatEndsAtOnceKeepsItsExitCode) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "short-" + std::to_string(i);
    const Outcome started =
        kymod_.kymo({"run", "process", "--name", name, "--", "/bin/sh", "-c", "exit 7"});
    ASSERT_EQ(started.exit_code, 0) << started.err;
    EXPECT_EQ(kymod_.kymo({"attach", name}).exit_code, 7) << name;
  }
}

}  // namespace
}  // namespace kymo::test
