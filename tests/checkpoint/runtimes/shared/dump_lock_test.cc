#include "checkpoint/runtimes/shared/dump_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace kymo::runtime {
namespace {

// Two children of this process.
class DumpLockTest : public testing::Test {
 protected:
  void SetUp() override {
    for (pid_t* const child : {&child_, &other_}) {
      *child = ::fork();
      if (*child == 0) {
        for (;;) ::pause();
      }
      ASSERT_GT(*child, 0);
    }
  }
  void TearDown() override {
    for (const pid_t child : {child_, other_}) {
      if (child <= 0) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  [[nodiscard]] ProcessId process() const { return {child_, 0}; }

  pid_t child_ = 0;
  pid_t other_ = 0;
};

TEST_F(DumpLockTest, IsHeldByOneAtATimeAndEndsWithItsDescriptors) {
  Result<DumpLock> first = lock_for_dump(process());
  ASSERT_TRUE(first.ok()) << first.error().message;
  const Result<DumpLock> second = lock_for_dump(process());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::failed_precondition);
  EXPECT_TRUE(lock_for_dump({other_, 0}).ok()) << "another process";
  first->clear();
  EXPECT_TRUE(lock_for_dump(process()).ok());
}

// A process and one below it had two locks, and both were dumped at the same time.
TEST_F(DumpLockTest, AProcessAndOneBelowItAreNotLockedAtTheSameTime) {
  Result<DumpLock> below = lock_for_dump(process());
  ASSERT_TRUE(below.ok()) << below.error().message;
  const Result<DumpLock> above = lock_for_dump({::getpid(), 0});
  ASSERT_FALSE(above.ok());
  EXPECT_EQ(above.error().code, Code::failed_precondition);
  below->clear();
  Result<DumpLock> all = lock_for_dump({::getpid(), 0});
  ASSERT_TRUE(all.ok()) << all.error().message;
  const Result<DumpLock> refused = lock_for_dump(process());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("process " + std::to_string(::getpid()) +
                                         ", which it descends from, is being dumped"),
            std::string::npos)
      << refused.error().message;
  all->clear();
  EXPECT_TRUE(lock_for_dump(process()).ok()) << "a refused attempt keeps nothing";
}

TEST_F(DumpLockTest, WaitsForTheEndOfAnotherLock) {
  Result<DumpLock> first = lock_for_dump(process());
  ASSERT_TRUE(first.ok()) << first.error().message;
  Result<DumpLock> second = Error{Code::internal, "not tried"};
  std::thread waits([&] { second = lock_for_dump(process(), std::chrono::minutes(1)); });
  first->clear();
  waits.join();
  EXPECT_TRUE(second.ok());
}

// Whoever may trace the process can lock it, so it is not said that this is a kymod.
TEST_F(DumpLockTest, TheErrorNamesTheFileThatIsLocked) {
  const Result<DumpLock> first = lock_for_dump(process());
  ASSERT_TRUE(first.ok());
  const std::string said = lock_for_dump(process()).error().message;
  EXPECT_NE(said.find("/proc/" + std::to_string(child_) + "/mem"), std::string::npos) << said;
}

TEST_F(DumpLockTest, AProcessThatIsGoneCannotBeLocked) {
  const pid_t gone = std::exchange(child_, 0);
  ::kill(gone, SIGKILL);
  ::waitpid(gone, nullptr, 0);
  EXPECT_EQ(lock_for_dump({gone, 0}).error().code, Code::not_found);
}

}  // namespace
}  // namespace kymo::runtime
