#include "support/moody_disk.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/file.h"
#include "base/proc/process.h"
#include "support/stop_child.h"

namespace kymo::test {
namespace {

dev_t device(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  return status.st_dev;
}

}  // namespace

MoodyDisk::MoodyDisk(const TemporaryDirectory& folder)
    : inner_(folder.folder("inner")), path_(folder.folder("moody")) {
  be("well");
  const std::string program = KYMO_TEST_MOODY_FS;
  char* arguments[] = {const_cast<char*>(program.c_str()), inner_.data(), path_.data(), nullptr};
  EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  mounted_ = eventually([&] { return device(path_) != device(folder.path()); });
}

MoodyDisk::~MoodyDisk() {
  be("well");
  go_on();
  ::umount2(path_.c_str(), MNT_DETACH);
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

void MoodyDisk::be(const std::string& mood) const {
  std::filesystem::remove(inner_ + ".held");
  std::ofstream(inner_ + ".mood.new") << mood;
  std::filesystem::rename(inner_ + ".mood.new", inner_ + ".mood");
}

bool MoodyDisk::holds_pages() const {
  return std::filesystem::exists(inner_ + ".held");
}

std::string MoodyDisk::synced() const {
  std::ifstream file(inner_ + ".synced");
  return {std::istreambuf_iterator<char>(file), {}};
}

void MoodyDisk::stop() const {
  EXPECT_TRUE(stop_child(pid_));
}

void MoodyDisk::go_on() const {
  ::kill(pid_, SIGCONT);
}

bool waits_for_disk(pid_t process) {
  const std::vector<pid_t> threads = probe::threads_of(process);
  return std::any_of(threads.begin(), threads.end(), [](pid_t thread) {
    const Result<std::string> where = read_file("/proc/" + std::to_string(thread) + "/wchan");
    return where && *where == "request_wait_answer";
  });
}

}  // namespace kymo::test
