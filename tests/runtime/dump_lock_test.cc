#include "runtime/dump_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/process.h"

namespace kymo::runtime {
namespace {

class DumpLockTest : public testing::Test {
 protected:
  void SetUp() override {
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) ::pause();
    }
    ASSERT_GT(child_, 0);
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  [[nodiscard]] ProcessId process() const { return {child_, 0}; }

  pid_t child_ = 0;
};

TEST_F(DumpLockTest, IsHeldByOneAtATimeAndEndsWithItsDescriptor) {
  Result<FileDescriptor> first = lock_for_dump(process());
  ASSERT_TRUE(first.ok()) << first.error().message;
  const Result<FileDescriptor> second = lock_for_dump(process());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::failed_precondition);
  EXPECT_TRUE(lock_for_dump({::getpid(), 0}).ok()) << "another process";
  first->reset();
  EXPECT_TRUE(lock_for_dump(process()).ok());
}

// Whoever may trace the process can lock it, so it is not said that this is a kymod.
TEST_F(DumpLockTest, TheErrorNamesTheFileThatIsLocked) {
  const Result<FileDescriptor> first = lock_for_dump(process());
  ASSERT_TRUE(first.ok());
  const std::string said = lock_for_dump(process()).error().message;
  EXPECT_NE(said.find("/proc/" + std::to_string(child_) + "/mem"), std::string::npos) << said;
}

TEST_F(DumpLockTest, AProcessThatIsGoneCannotBeLocked) {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  EXPECT_EQ(lock_for_dump(process()).error().code, Code::not_found);
}

}  // namespace
}  // namespace kymo::runtime
