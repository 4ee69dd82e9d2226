#include "probe/open_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
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

// One dump on a disk that stalled kept kymod from ending the CRIU of any other dump.
TEST(OpenFilesTest, AFileOfThisNameOnADiskThatStallsHoldsNobodyUp) {
  const test::TemporaryDirectory folder;
  const test::MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string stalled = disk.path() + "/dump.log";
  const FileDescriptor there(open(stalled.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(there.valid());
  const std::string path = folder.file("dump.log", "");
  const FileDescriptor writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  std::this_thread::sleep_for(1100ms);  // what the kernel remembers of the file is forgotten
  disk.stop();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<pid_t> found = processes_writing(path);
  const auto took = std::chrono::steady_clock::now() - began;
  disk.go_on();
  EXPECT_EQ(found, std::vector<pid_t>{getpid()});
  EXPECT_LT(took, 1s);
}

}  // namespace
}  // namespace kymo::probe
