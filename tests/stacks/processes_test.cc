// What a hostile process can put in place of its perf map.

#include "stacks/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "stacks/naming_plan.h"
#include "stacks/symbols.h"
#include "support/temporary_directory.h"

namespace kymo::stacks {
namespace {

constexpr std::uint64_t kCode = 0x7f0000000000;

// A process that has generated code at run time.
class PerfMapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pid_ = ::fork();
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    ASSERT_GT(pid_, 0);
    map_ = "/tmp/perf-" + std::to_string(pid_) + ".map";
    std::filesystem::remove(map_);
    processes_.add_running(pid_);
    processes_.mapped({pid_, kCode, kCode + 4096, 0, 0, 0, ""});
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove(map_);
  }
  // The name of an address in the generated code.
  std::string name() {
    processes_.find_perf_map(pid_);
    const std::optional<Frame> frame = processes_.at(pid_).memory.find(kCode + 1);
    EXPECT_TRUE(frame);
    Symbols symbols;
    return frame ? symbols.at(*frame).lines.back().function : std::string();
  }
  void write_map(const std::string& name) const {
    std::ofstream(map_) << std::hex << kCode << " 10 " << name << "\n";
  }

  pid_t pid_ = 0;
  std::string map_;
  Processes processes_;
};

TEST_F(PerfMapTest, OneOfTheProcessesUserIsRead) {
  write_map("compiled");
  EXPECT_EQ(name(), "compiled");
}

TEST_F(PerfMapTest, OneOfAnotherUserIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  write_map("lie");
  ASSERT_EQ(::chown(map_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(name(), "[jit]");
}

TEST_F(PerfMapTest, NoLinkIsFollowed) {
  const test::TemporaryDirectory folder;
  std::filesystem::create_symlink(folder.file("secret", "7f0000000000 10 secret\n"), map_);
  EXPECT_EQ(name(), "[jit]");
}

TEST_F(PerfMapTest, APipeOrAFolderHoldsNobodyUp) {
  ASSERT_EQ(::mkfifo(map_.c_str(), 0644), 0);
  EXPECT_EQ(name(), "[jit]");
  std::filesystem::remove(map_);
  std::filesystem::create_directory(map_);
  EXPECT_EQ(name(), "[jit]");
}

TEST_F(PerfMapTest, OneThatIsTooLongIsNotRead) {
  write_map("compiled");
  // A file of 1 TiB that is only a hole.
  std::filesystem::resize_file(map_, std::uint64_t{1} << 40U);
  EXPECT_EQ(name(), "[jit]");
}

TEST_F(PerfMapTest, LinesWithoutEndAndControlCodesAreText) {
  std::ofstream(map_) << std::hex << kCode << " 10 a\x1b[2J;b" << std::string(100'000, 'x');
  EXPECT_TRUE(name().starts_with("a"));
}

}  // namespace
}  // namespace kymo::stacks
