// The process without rights that reads programs for the unwinder, and its answers.

#include "profiler/stacks/elf_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/sanitizers.h"
#include "profiler/stacks/elf_file.h"
#include "profiler/stacks/elf_layout.h"
#include "support/temporary_directory.h"

namespace kymo::stacks {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Reads this program itself, which has many rows of unwind rules.
class ElfReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(program_.valid()); }

  std::unique_ptr<ElfLayout> read(const std::shared_ptr<ElfReader>& reader) const {
    std::unique_ptr<ElfLayout> layout = ElfLayout::read(reader, program_.get());
    EXPECT_NE(layout, nullptr);
    return layout;
  }
  // Addresses in the program. Some of them are in no function.
  std::vector<std::uint64_t> addresses() const {
    std::vector<std::uint64_t> all{0, UINT64_MAX};
    for (const Segment& segment : elf_->segments()) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        all.push_back(segment.address + segment.size / 100 * i);
      }
    }
    return all;
  }
  // An address that is in a function.
  std::uint64_t known_address() {
    for (const std::uint64_t address : addresses()) {
      if (const auto row = elf_->row_at(address); row && !row->frame_address().empty()) {
        return address;
      }
    }
    ADD_FAILURE() << "no address has a row";
    return 0;
  }
  static void wait_until_stopped(pid_t pid) {
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT), 0);
  }

  FileDescriptor program_{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  std::unique_ptr<ElfFile> elf_ = ElfFile::open(program_);
};

TEST_F(ElfReaderTest, SaysWhatTheFileSays) {
  const auto reader = std::make_shared<ElfReader>();
  const auto layout = read(reader);
  std::size_t rows = 0;
  for (const std::uint64_t address : addresses()) {
    const std::optional<FrameRow> wanted = elf_->row_at(address);
    for (int i = 0; i < 2; ++i) {
      const FrameRow* const row = layout->row_at(address);
      ASSERT_EQ(row != nullptr, wanted.has_value()) << address;
      if (row == nullptr) continue;
      ASSERT_EQ(*row, *wanted) << address;
      ++rows;
    }
  }
  EXPECT_GT(rows, 20U);
  const Segment& first = elf_->segments().front();
  EXPECT_EQ(layout->address_at(first.offset), first.address);
  EXPECT_FALSE(layout->address_at(UINT64_MAX));
  EXPECT_GT(reader->cpu_ns(), 0U);
}

TEST_F(ElfReaderTest, TheVdsoIsKnown) {
  const auto vdso = ElfLayout::read(std::make_shared<ElfReader>(), -1);
  ASSERT_NE(vdso, nullptr);
  EXPECT_EQ(vdso->address_at(0), 0U);
}

// An attacker may control this process through a program file. It must not have any rights.
TEST_F(ElfReaderTest, ItsProcessHasNoRights) {
  const auto reader = std::make_shared<ElfReader>();
  static_cast<void>(read(reader));
  const std::string proc = "/proc/" + std::to_string(reader->pid());
  const std::string status = read_file(proc + "/status").value();
  std::vector<std::string> wanted{"NoNewPrivs:\t1\n"};
  if (::geteuid() == 0) {
    wanted.insert(wanted.end(), {"Uid:\t65534\t65534\t65534\t0\n", "CapBnd:\t0000000000000000\n"});
  }
  if (!KYMO_SANITIZER) wanted.emplace_back("Seccomp:\t2\n");
  for (const std::string& line : wanted) {
    EXPECT_NE(status.find(line), std::string::npos) << line << status;
  }
  for (const auto& entry : fs::directory_iterator(proc + "/fd")) {
    const int fd = std::stoi(entry.path().filename());
    const std::string target = fs::read_symlink(entry.path());
    const bool own = fd <= STDERR_FILENO || target.starts_with("socket:") ||
                     target == fs::read_symlink("/proc/self/exe");
    EXPECT_TRUE(own) << fd << " " << target;
  }
}

TEST_F(ElfReaderTest, OneThatIsKilledIsStartedAgain) {
  const auto reader = std::make_shared<ElfReader>();
  const auto layout = read(reader);
  const pid_t first = reader->pid();
  ::kill(first, SIGKILL);
  wait_until_stopped(first);
  EXPECT_NE(layout->row_at(known_address()), nullptr);
  EXPECT_NE(reader->pid(), first);
  EXPECT_NE(read(reader)->row_at(known_address()), nullptr);
}

// A file may keep the process busy without end.
TEST_F(ElfReaderTest, OneThatDoesNotAnswerIsEndedAndOnlyThatFileIsNotReadAgain) {
  const auto reader =
      std::make_shared<ElfReader>(ElfReader::Patience{milliseconds(60'000), milliseconds(200)});
  // On a busy machine, a correct file may take longer than this timeout, too.
  const auto read_at_last = [&] {
    std::unique_ptr<ElfLayout> layout;
    EXPECT_TRUE(test::eventually([&] {
      layout = ElfLayout::read(reader, program_.get());
      return layout != nullptr;
    }));
    return layout;
  };
  const auto layout = read_at_last();
  ASSERT_NE(layout, nullptr);
  const pid_t first = reader->pid();
  ::kill(first, SIGSTOP);
  wait_until_stopped(first);
  EXPECT_EQ(layout->row_at(known_address()), nullptr);
  EXPECT_NE(::kill(first, 0), 0) << "the process that did not answer must have been ended";
  EXPECT_EQ(layout->row_at(known_address()), nullptr);
  EXPECT_EQ(reader->pid(), 0) << "no new process may be started for this file";
  EXPECT_NE(read_at_last(), nullptr);
}

TEST_F(ElfReaderTest, AFileThatIsForgottenIsClosed) {
  const auto reader = std::make_shared<ElfReader>();
  const auto first = read(reader);
  const auto open_files = [&] {
    const fs::directory_iterator all("/proc/" + std::to_string(reader->pid()) + "/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_files();
  std::vector<std::unique_ptr<ElfLayout>> more;
  for (int i = 0; i < 300; ++i) more.push_back(read(reader));
  EXPECT_EQ(open_files(), before + 300);
  more.clear();
  EXPECT_TRUE(test::eventually([&] { return open_files() == before; }));
  EXPECT_NE(first->row_at(known_address()), nullptr);
}

TEST_F(ElfReaderTest, FilesThatAreNoneOrDamagedHarmNothing) {
  const test::TemporaryDirectory folder;
  const auto reader = std::make_shared<ElfReader>();
  const auto read_text = [&](const std::string& text) {
    const FileDescriptor file(::open(folder.file("file", text).c_str(), O_RDONLY | O_CLOEXEC));
    const auto layout = ElfLayout::read(reader, file.get());
    if (layout != nullptr) static_cast<void>(layout->row_at(known_address()));
    return layout != nullptr;
  };
  EXPECT_FALSE(read_text(""));
  EXPECT_FALSE(read_text("#!/bin/sh\n"));
  std::ifstream own("/proc/self/exe", std::ios::binary);
  const std::string program{std::istreambuf_iterator<char>(own), {}};
  for (std::size_t size = 1; size < 4096; size += 61) read_text(program.substr(0, size));
  std::string damaged = program.substr(0, std::min<std::size_t>(program.size(), 1 << 20));
  for (std::size_t at = 4; at < 1024; at += 7) {
    damaged[at] = static_cast<char>(0xff);
    read_text(damaged);
  }
  EXPECT_NE(read(reader)->row_at(known_address()), nullptr);
}

FrameRow some_row() {
  FrameRow row;
  row.operations = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  row.ends = {1, 1, 1, 1, 1, 1, 1, 3};
  row.begin = 10;
  row.end = 20;
  row.signal = true;
  return row;
}

TEST(FrameRowTest, WhatIsSaidIsReadAgain) {
  const FrameRow row = some_row();
  EXPECT_EQ(row.frame_address().size(), 1U);
  EXPECT_EQ(row.kept(0).size(), 0U);
  EXPECT_EQ(row.kept(6).size(), 2U);
  EXPECT_EQ(row_in(message_of(row), 15), row);
  EXPECT_FALSE(row_in(message_of(std::optional<FrameRow>()), 15));
  const std::vector<Segment> segments{{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(segments_in(message_of(std::optional(segments))), segments);
  EXPECT_FALSE(segments_in(message_of(std::optional<std::vector<Segment>>())));
}

TEST(FrameRowTest, OtherMessagesAreRefused) {
  const std::string good = message_of(some_row());
  EXPECT_FALSE(row_in(good, 20)) << "the row is for another address";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(row_in(good.substr(0, size), 15)) << size;
  }
  EXPECT_FALSE(row_in(good + 'x', 15));
  FrameRow back = some_row();
  back.ends = {3, 1, 1, 1, 1, 1, 1, 3};
  EXPECT_FALSE(row_in(message_of(back), 15));
  EXPECT_FALSE(segments_in("\1half a segment"));
}

}  // namespace
}  // namespace kymo::stacks
