#include "base/lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo {
namespace {

using std::chrono::milliseconds;

class LockTest : public testing::Test {
 protected:
  [[nodiscard]] FileDescriptor open_again() const {
    return FileDescriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  }

  test::TemporaryDirectory folder_;
  std::string path_ = folder_.file("lock", "");
};

TEST_F(LockTest, WaitsForALockOnlyAsLongAsAllowed) {
  const FileDescriptor mine = open_again();
  ASSERT_EQ(lock_within(mine.get(), milliseconds(0)), 0);
  const FileDescriptor other = open_again();
  EXPECT_EQ(lock_within(other.get(), milliseconds(30)), EWOULDBLOCK);
  ASSERT_EQ(::flock(mine.get(), LOCK_UN), 0);
  EXPECT_EQ(lock_within(other.get(), milliseconds(0)), 0);
  EXPECT_EQ(lock_within(-1, milliseconds(1000)), EBADF);
}

TEST_F(LockTest, WaitsForTheChildOfOneThatIsGone) {
  FileDescriptor theirs = open_again();
  ASSERT_EQ(lock_within(theirs.get(), milliseconds(0)), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::usleep(200'000);
    ::_exit(0);
  }
  theirs.reset();  // now only the child has the lock, like the child of a process that was killed
  const FileDescriptor next = open_again();
  EXPECT_NE(::flock(next.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(lock_within(next.get(), std::chrono::seconds(30)), 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace kymo
