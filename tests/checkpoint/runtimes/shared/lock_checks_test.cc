// Which process has a file lock that a restore needs.
#include "checkpoint/runtimes/shared/lock_checks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <iomanip>
#include <sstream>
#include <string>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

class HeldLocksTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.path() + "/file"; }
  // A line of /proc/locks about the file of the test.
  [[nodiscard]] std::string line(const std::string& kind, const std::string& range) const {
    struct stat seen {};
    EXPECT_EQ(::stat(path().c_str(), &seen), 0);
    std::ostringstream text;
    text << "1: " << kind << ' ' << getpid() << ' ' << std::hex << std::setfill('0') << std::setw(2)
         << major(seen.st_dev) << ':' << std::setw(2) << minor(seen.st_dev) << ':' << std::dec
         << seen.st_ino << ' ' << range << '\n';
    return text.str();
  }
  [[nodiscard]] bool excludes(const std::string& held, const criu::NeededLock& lock) const {
    const std::optional<LockHolder> holder = HeldLocks(held).holder_of(lock);
    EXPECT_EQ(holder ? holder->pid : getpid(), getpid());
    return holder.has_value();
  }

  test::TemporaryDirectory folder_;
  const FileDescriptor file_{
      ::open((folder_.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(HeldLocksTest, TheRealTableNamesWhoHoldsALock) {
  const criu::NeededLock whole{path(), true, true};
  const criu::NeededLock part{path(), false, true, 10, 5};
  EXPECT_FALSE(HeldLocks::now().holder_of(whole));
  ASSERT_EQ(::flock(file_.get(), LOCK_EX), 0);
  const std::optional<LockHolder> holder = HeldLocks::now().holder_of(whole);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->pid, getpid());
  EXPECT_NE(holder->name, "");
  EXPECT_FALSE(HeldLocks::now().holder_of(part)) << "a lock of the other kind does not conflict";
  struct flock asked {};
  asked.l_type = F_WRLCK;
  asked.l_start = 14;
  asked.l_len = 1;
  ASSERT_EQ(::fcntl(file_.get(), F_SETLK, &asked), 0);
  EXPECT_TRUE(HeldLocks::now().holder_of(part));
}

TEST_F(HeldLocksTest, OnlyALockOfTheSameBytesThatIsExclusiveExcludes) {
  const std::string read = line("POSIX  ADVISORY  READ", "10 14");
  const std::string write = line("POSIX  ADVISORY  WRITE", "10 14");
  EXPECT_FALSE(excludes(read, {path(), false, false, 0, 0}));
  EXPECT_TRUE(excludes(read, {path(), false, true, 0, 0}));
  EXPECT_TRUE(excludes(write, {path(), false, false, 14, 1}));
  EXPECT_FALSE(excludes(write, {path(), false, true, 15, 0}));
  EXPECT_FALSE(excludes(write, {path(), false, true, 0, 10}));
  EXPECT_TRUE(excludes(line("POSIX  ADVISORY  WRITE", "100 EOF"), {path(), false, true, 500, 1}));
  EXPECT_TRUE(excludes(line("OFDLCK ADVISORY  WRITE", "0 EOF"), {path(), false, true, 5, 1}));
  EXPECT_FALSE(excludes(write, {path(), true, true, 0, 0}));
  EXPECT_FALSE(excludes(write, {path() + "-other", false, true, 0, 0}));
}

TEST_F(HeldLocksTest, WhoWaitsHoldsNothingAndLinesThatAreNoLocksAreLeftOut) {
  const criu::NeededLock whole{path(), true, true};
  EXPECT_TRUE(excludes(line("FLOCK  ADVISORY  WRITE", "0 EOF"), whole));
  EXPECT_FALSE(excludes(line("-> FLOCK  ADVISORY  WRITE", "0 EOF"), whole));
  EXPECT_FALSE(excludes(line("LEASE  ACTIVE    READ", "0 EOF"), whole));
  for (const char* broken :
       {"", "\n", "1:", "1: FLOCK ADVISORY WRITE x fe:00:1 0 EOF",
        "1: FLOCK ADVISORY WRITE 1 fe:00 0 EOF", "1: FLOCK ADVISORY WRITE 1"}) {
    EXPECT_FALSE(HeldLocks(broken).holder_of(whole)) << broken;
  }
}

}  // namespace
}  // namespace kymo::runtime
