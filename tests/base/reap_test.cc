#include "base/reap.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kymo {
namespace {

pid_t child_that_waits() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  return child;
}

TEST(Reap, TellsHowAChildEnded) {
  const pid_t child = child_that_waits();
  ASSERT_GT(child, 0);
  kill(child, SIGKILL);
  rusage used{};
  const std::optional<int> status = reap_within(child, std::chrono::seconds(60), &used);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), -1) << "the child must have been reaped already";
}

int go_on = -1;  // the end of a pipe for which a child waits

TEST(Reap, ASignalDoesNotEndTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  go_on = ends[1];
  struct sigaction action {};
  action.sa_handler = [](int) { static_cast<void>(!write(go_on, "g", 1)); };
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);  // without SA_RESTART
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    kill(parent, SIGUSR1);
    _exit(read(ends[0], &byte, 1) == 1 ? 3 : 4);
  }
  ASSERT_GT(child, 0);
  EXPECT_EQ(reap(child), W_EXITCODE(3, 0));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), -1) << "the child must have been reaped already";
  sigaction(SIGUSR1, &before, nullptr);
  close(ends[0]);
  close(ends[1]);
}

TEST(Reap, AChildThatDoesNotEndIsNotWaitedForAndReapedLater) {
  const pid_t child = child_that_waits();
  ASSERT_GT(child, 0);
  EXPECT_FALSE(reap_within(child, std::chrono::milliseconds(1)).has_value());
  EXPECT_EQ(kill(child, 0), 0) << "it lives";
  kill(child, SIGKILL);
  for (int i = 0; i < 60'000 && kill(child, 0) == 0; ++i) usleep(1000);
  EXPECT_EQ(kill(child, 0), -1) << "nobody has reaped it";
}

TEST(Reap, SaysHowAProcessEnded) {
  EXPECT_EQ(how_it_ended(W_EXITCODE(0, 0)), "exited with status 0");
  EXPECT_EQ(how_it_ended(W_EXITCODE(3, 0)), "exited with status 3");
  EXPECT_EQ(how_it_ended(SIGKILL), "was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(how_it_ended(SIGSEGV | WCOREFLAG), "was ended by signal 11 (SIGSEGV)");
  EXPECT_EQ(how_it_ended(40), "was ended by signal 40");
}

TEST(Reap, AChildThatHasEndedIsStillThereToBeReaped) {
  const pid_t child = child_that_waits();
  ASSERT_GT(child, 0);
  EXPECT_FALSE(has_ended(child));
  kill(child, SIGKILL);
  while (!has_ended(child)) usleep(1000);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_ended(child)) << "no such child";
}

TEST(Reap, TheExitCodeOfAShell) {
  EXPECT_EQ(shell_exit_code(W_EXITCODE(3, 0)), 3);
  EXPECT_EQ(shell_exit_code(SIGKILL), 137);
  EXPECT_EQ(shell_exit_code(SIGSEGV | WCOREFLAG), 139);
}

}  // namespace
}  // namespace kymo
