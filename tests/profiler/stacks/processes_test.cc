// What a hostile process can put in place of its perf map, and what is kept of processes that have ended.

#include "profiler/stacks/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "profiler/stacks/naming_plan.h"
#include "profiler/stacks/symbols.h"
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

// No process has this pid or a higher one: the kernel's limit is 2^22.
constexpr pid_t kNobody = 1 << 23;

class KeptProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override { processes_.add_running(::getpid()); }
  // Code that a process has generated, of `count` mappings.
  void map(pid_t pid, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t begin = kCode + 8192 * i;
      processes_.mapped({pid, begin, begin + 4096, 0, 0, 0, ""});
    }
  }

  Processes processes_;
};

TEST_F(KeptProcessesTest, AChildSharesTheMappingsOfItsParent) {
  map(::getpid(), 10'000);
  const std::size_t before = processes_.kept().mappings;
  for (pid_t i = 0; i < 1000; ++i) processes_.forked({kNobody + i, ::getpid()});
  EXPECT_EQ(processes_.kept().processes, 1001U);
  EXPECT_EQ(processes_.kept().mappings, before) << "a program that forks must not multiply them";
  processes_.mapped({kNobody, kCode - 8192, kCode - 4096, 0, 0, 0, ""});
  EXPECT_EQ(processes_.kept().mappings, 2 * before + 1);
  EXPECT_TRUE(processes_.at(kNobody).memory.find(kCode - 8192));
  EXPECT_FALSE(processes_.at(::getpid()).memory.find(kCode - 8192));
}

TEST_F(KeptProcessesTest, EndedProcessesWithManyMappingsAreForgottenEarlier) {
  for (pid_t i = 0; i < 600; ++i) {
    processes_.forked({kNobody + i, ::getpid()});
    map(kNobody + i, 1000);
    processes_.exited({kNobody + i});
  }
  EXPECT_LE(processes_.kept().mappings, Processes::kEndedMappings + 1000);
  EXPECT_GE(processes_.kept().processes, 100U);
  EXPECT_TRUE(processes_.at(kNobody + 599).memory.find(kCode)) << "the newest must be kept";
}

TEST_F(KeptProcessesTest, AProcessWhoseEndWasNotReportedIsForgotten) {
  for (pid_t i = 0; i < 3000; ++i) processes_.forked({kNobody + i, ::getpid()});
  EXPECT_EQ(processes_.kept().processes, 3001U);
  static_cast<void>(processes_.take_unused());
  EXPECT_EQ(processes_.kept().processes, 1 + Processes::kEndedKept);
}

TEST_F(KeptProcessesTest, AProcessThatIsGoneWhenItIsReadIsForgotten) {
  for (pid_t i = 0; i < 3000; ++i) static_cast<void>(processes_.at(kNobody + i));
  EXPECT_EQ(processes_.kept().processes, 1 + Processes::kEndedKept);
}

}  // namespace
}  // namespace kymo::stacks
