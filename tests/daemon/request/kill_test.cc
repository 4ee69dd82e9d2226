#include "daemon/request/kill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/proc/process.h"

namespace kymo::daemon {
namespace {

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pid_ = fork();
    if (pid_ == 0) {
      for (;;) pause();
    }
    start_ticks_ = probe::read_process(pid_)->start_ticks;
  }
  void TearDown() override {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid_ = 0;
  std::uint64_t start_ticks_ = 0;
};

TEST_F(KillTest, TheProcessGetsTheSignal) {
  ASSERT_TRUE(signal_process({pid_, start_ticks_}, SIGTERM).ok());
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = 0;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST_F(KillTest, AnotherProcessOfTheSamePidIsLeftAlone) {
  const Result<void> refused = signal_process({pid_, start_ticks_ + 1}, SIGKILL);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::not_found);
  EXPECT_NE(refused.error().message.find("its process is gone"), std::string::npos);
  EXPECT_TRUE(probe::process_lives(pid_, start_ticks_));
}

TEST_F(KillTest, AProcessThatIsGoneIsReported) {
  ASSERT_TRUE(signal_process({pid_, start_ticks_}, SIGKILL).ok());
  ASSERT_EQ(waitpid(pid_, nullptr, 0), pid_);
  const Result<void> refused = signal_process({std::exchange(pid_, 0), start_ticks_}, SIGTERM);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::not_found);
}

}  // namespace
}  // namespace kymo::daemon
