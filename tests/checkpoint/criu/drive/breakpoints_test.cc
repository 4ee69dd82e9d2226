#include "checkpoint/criu/drive/breakpoints.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

// CRIU 4.2 prints a warning in each check if hardware breakpoints do not work.
bool criu_says_they_work() {
  const std::string command =
      "'" + test::criu_path() + "' check -v4 2>&1 | grep -q 'ardware breakpoints'";
  return std::system(command.c_str()) != 0;  // NOLINT(cert-env33-c): a test's own command
}

TEST(Breakpoints, AreFoundToWorkWhereCriuFindsThatToo) {
  if (!test::why_no_criu().empty()) FAIL() << test::why_no_criu();
  EXPECT_EQ(hardware_breakpoints_work(), criu_says_they_work());
}

TEST(Breakpoints, AKillDuringTheTrialLeavesNoStoppedProcess) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  for (int us = 0; us < 3000; us += 30) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) static_cast<void>(hardware_breakpoints_work());
    }
    usleep(static_cast<useconds_t>(us));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    ASSERT_TRUE(test::eventually([] { return waitpid(-1, nullptr, WNOHANG) < 0; }))
        << "killed after " << us << " us";
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(Breakpoints, CriuIsToldOnlyWhereTheyDoNotWork) {
  const bool work = hardware_breakpoints_work();
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("CRIU_FAULT");
    const bool told = avoid_broken_breakpoints();
    const char* fault = std::getenv("CRIU_FAULT");
    _exit(told == !work && (fault != nullptr) == told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace kymo::criu
