#include "base/proc/open_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

using namespace std::chrono_literals;

TEST(OpenFilesTest, WhoWritesIsFoundAndWhoReadsIsNot) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("dump.log", "");
  {
    const FileDescriptor reader(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(processes_writing(path).empty());
  }
  const FileDescriptor writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(processes_writing(path), std::vector<pid_t>{getpid()});
  const std::string other = folder.folder("other") + "/dump.log";
  const FileDescriptor another(open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(processes_writing(path).empty());
}

TEST(OpenFilesTest, ThroughAnotherNameOfItItIsFoundToo) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("dump.log", "");
  const std::string elsewhere = folder.folder("elsewhere") + "/dump.log";
  ASSERT_EQ(link(path.c_str(), elsewhere.c_str()), 0);
  const FileDescriptor writer(open(elsewhere.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(processes_writing(path), std::vector<pid_t>{getpid()});
}

TEST(OpenFilesTest, WhoWritesToTheTargetOfALinkIsNotFound) {
  const test::TemporaryDirectory folder;
  const std::string other = folder.folder("other") + "/dump.log";
  const std::string path = folder.path() + "/dump.log";
  ASSERT_EQ(symlink(other.c_str(), path.c_str()), 0);
  const FileDescriptor writer(open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(processes_writing(path).empty());
}

// A process in another mount namespace had a different file with the same path and inode.
TEST(OpenFilesTest, AFileOfThisPathInAnotherMountNamespaceIsAnotherOne) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  const test::TemporaryDirectory folder;
  const std::string place = folder.folder("place");
  const std::string path = place + "/dump.log";
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const auto mounted = [&] { return mount("none", place.c_str(), "tmpfs", 0, nullptr) == 0; };
  const auto inode = [&](int fd) {
    struct stat info {};
    return fstat(fd, &info) == 0 ? info.st_ino : 0;
  };
  const pid_t child = fork();
  if (child == 0) {
    const bool apart = unshare(CLONE_NEWNS) == 0 &&
                       mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mounted();
    const int there = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const ino_t number = apart ? inode(there) : 0;
    if (write(told[1], &number, sizeof number) != sizeof number) _exit(1);
    for (;;) pause();
  }
  ino_t other = 0;
  EXPECT_EQ(::read(told[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  if (other != 0) {
    ASSERT_TRUE(mounted());
    const FileDescriptor here(open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(inode(here.get()), other) << "the first files of two tmpfs must have the same inode";
    EXPECT_TRUE(processes_writing(path).empty());
    umount2(place.c_str(), MNT_DETACH);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int end : told) close(end);
  if (other == 0) GTEST_SKIP() << "no mount namespace can be made here";
}

TEST(OpenFilesTest, AFileOfThisNameOnADiskThatStallsHoldsNobodyUp) {
  const test::TemporaryDirectory folder;
  const test::MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string stalled = disk.path() + "/dump.log";
  const FileDescriptor there(open(stalled.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(there.valid());
  const std::string path = folder.file("dump.log", "");
  const FileDescriptor writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  std::this_thread::sleep_for(1100ms);  // the kernel forgets what it has cached of the file
  disk.stop();
  // If each call waited for the disk, all of them would take longer than the limit of a test.
  for (int i = 0; i < 200; ++i) EXPECT_EQ(processes_writing(path), std::vector<pid_t>{getpid()});
  disk.go_on();
}

}  // namespace
}  // namespace kymo::probe
