// The files of a process are different at its restore: another file or terminal replaces one of
// them, or a program was built again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/spawn.h"
#include "programs.h"
#include "small_disk.h"
#include "subjects.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// The number in the last complete line of a file, or 0 if there is none.
int last_number_in(const std::string& path) {
  return std::atoi(last_line_in(path).c_str());
}

class RestoredFilesTest : public SubjectsTest {
 protected:
  // Makes a dump with these flags, and restores it with another file in place of the one that the
  // process had open.
  void expect_another_file(const std::vector<std::string>& flags) {
    const std::string old = kymod_.path("old.log");
    const std::string other = kymod_.folder().file("other.log", "begun by somebody else\n");
    start({"log", old});
    ASSERT_TRUE(eventually([&] { return last_number_in(old) > 0; }));
    dump(flags);
    const int last = last_number_in(old);
    const auto size = fs::file_size(old);
    restore({"--inherit-fd", old.substr(1) + "=" + other});
    EXPECT_TRUE(eventually([&] { return last_number_in(other) > last; })) << read_file(other);
    EXPECT_EQ(read_file(other).find("begun by somebody else\n"), 0U)
        << "the process must append to the other file";
    EXPECT_EQ(fs::file_size(old), size);
  }
};

TEST_F(RestoredFilesTest, AnotherFileTakesThePlaceOfTheOneThatTheProcessHad) {
  expect_another_file({"--no-stream"});
}

TEST_F(RestoredFilesTest, AnotherFileTakesItsPlaceIfTheImagesComeThroughKymod) {
  expect_another_file({"--compression", "zstd"});
}

TEST_F(RestoredFilesTest, WhatTheOptionsNameAndIsMissingIsRefusedBeforeAnythingIsWritten) {
  const std::string old = kymod_.path("old.log");
  start({"log", old});
  dump();
  const std::string missing = kymod_.path("missing");
  const std::string folder = kymod_.folder().path();
  using Words = std::vector<std::string>;
  for (const auto& [words, named] : std::vector<std::pair<Words, std::string>>{
           {{"--inherit-fd", old.substr(1) + "=" + missing}, missing},
           {{"--inherit-fd", old.substr(1) + "=" + folder}, folder},
           {{"--external", "mnt[data]:" + missing}, missing},
           {{"--root", missing}, missing}}) {
    Words all{"restore", checkpoint()};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome refused = kymod_.kymo(all);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(named), std::string::npos) << refused.err;
  }
  EXPECT_FALSE(fs::exists(checkpoint() + "/recordings/restore.tsv"));
  const std::string metrics = ask(kymod_, "/metrics").text;
  EXPECT_NE(metrics.find("kymo_restores_total{result=\"refused\"} 4"), std::string::npos)
      << metrics;
  restore();
}

// A terminal. This test has its other end.
struct Terminal {
  FileDescriptor master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  FileDescriptor slave;
  std::string path;

  Terminal() {
    EXPECT_EQ(::grantpt(master.get()) | ::unlockpt(master.get()), 0);
    std::array<char, 64> name{};
    EXPECT_EQ(::ptsname_r(master.get(), name.data(), name.size()), 0);
    path = name.data();
    slave = FileDescriptor(::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  // Its name in the syntax of CRIU's options.
  [[nodiscard]] std::string name() const {
    struct stat seen {};
    EXPECT_EQ(::fstat(slave.get(), &seen), 0);
    std::ostringstream text;
    text << std::hex << "tty[" << seen.st_rdev << ':' << seen.st_dev << ']';
    return text.str();
  }
  // The next number that is written to the terminal, or 0 if none is written.
  [[nodiscard]] int next_number() const {
    std::string line;
    for (char c = 0; c != '\n'; line.push_back(c)) {
      pollfd readable{master.get(), POLLIN, 0};
      if (::poll(&readable, 1, 30'000) <= 0 || ::read(master.get(), &c, 1) != 1) return 0;
    }
    return std::atoi(line.c_str());
  }
};

TEST_F(RestoredFilesTest, AnotherTerminalTakesThePlaceOfTheOneThatTheProcessHad) {
  const Terminal before;
  const std::string loop = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done";
  const Result<pid_t> started =
      spawn({.file = "/bin/sh",
             .words = {"sh", "-c", loop},
             .descriptors = {before.slave.get(), before.slave.get(), before.slave.get()},
             .leads = Program::Leads::session});
  ASSERT_TRUE(started.ok());
  EXPECT_GT(before.next_number(), 0);
  const std::vector<std::string> words{"dump", "process", std::to_string(*started), "--dir",
                                       checkpoint()};
  const Outcome refused = kymod_.kymo(words);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--external"), std::string::npos) << refused.err;
  std::vector<std::string> with_name = words;
  with_name.insert(with_name.end(), {"--external", before.name()});
  const Outcome dumped = kymod_.kymo(with_name);
  waitpid(*started, nullptr, 0);
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Terminal after;
  static_cast<void>(kymod_.kymo_json(
      {"restore", checkpoint(), "--inherit-fd", before.name() + "=" + after.path}));
  EXPECT_GT(after.next_number(), 1);
  kill(*started, SIGKILL);
}

// The next line that is read from a pipe, or empty if there is none.
std::string next_line(int fd) {
  std::string line;
  for (char c = 0; c != '\n'; line.push_back(c)) {
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, 30'000) <= 0 || ::read(fd, &c, 1) != 1) return {};
  }
  return line;
}

// A pipe. The program has one end of it.
struct Pipe {
  FileDescriptor reads;
  FileDescriptor writes;

  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reads = FileDescriptor(ends[0]);
    writes = FileDescriptor(ends[1]);
  }
  // Its name in the syntax of CRIU's options.
  [[nodiscard]] std::string name() const {
    return fs::read_symlink("/proc/self/fd/" + std::to_string(reads.get()));
  }
};

// A named pipe that is open in this process.
struct NamedPipe {
  std::string path;
  FileDescriptor fd;

  explicit NamedPipe(std::string at) : path(std::move(at)) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    fd = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
};

TEST_F(RestoredFilesTest, OtherPipesTakeThePlaceOfThoseThatTheProcessHad) {
  const Pipe asks;
  const Pipe answers;
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Result<pid_t> started =
      spawn({.file = "/bin/sh",
             .words = {"sh", "-c", "while read -r line; do echo \"heard $line\"; done"},
             .descriptors = {asks.reads.get(), answers.writes.get(), nothing.get()},
             .leads = Program::Leads::session});
  ASSERT_TRUE(started.ok());
  ASSERT_EQ(::write(asks.writes.get(), "one\n", 4), 4);
  EXPECT_EQ(next_line(answers.reads.get()), "heard one\n");
  const Outcome dumped =
      kymod_.kymo({"dump", "process", std::to_string(*started), "--dir", checkpoint()});
  waitpid(*started, nullptr, 0);
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const NamedPipe other_asks(kymod_.path("asks"));
  const NamedPipe other_answers(kymod_.path("answers"));
  static_cast<void>(kymod_.kymo_json({"restore", checkpoint(),  //
                                      "--inherit-fd", asks.name() + "=" + other_asks.path,
                                      "--inherit-fd", answers.name() + "=" + other_answers.path}));
  ASSERT_EQ(::write(other_asks.fd.get(), "two\n", 4), 4);
  EXPECT_EQ(next_line(other_answers.fd.get()), "heard two\n");
  kill(*started, SIGKILL);
}

// A copy of a program whose build id the test can change.
class ProgramTest : public SubjectsTest {
 protected:
  void SetUp() override {
    SubjectsTest::SetUp();
    fs::copy_file("/bin/sleep", program());
    job_ = kymod_.kymo_json({"run", "process", "--name", "subject", "--", program(), "1000"});
  }
  std::string program() const { return kymod_.path("program"); }

  // Makes it another build of the same size.
  void change_build_id() const {
    const std::string notes = run({"readelf", "--notes", program()}).out;
    const std::size_t at = notes.find("Build ID: ");
    ASSERT_NE(at, std::string::npos) << notes;
    std::string id;
    for (std::size_t i = at + 10; std::isxdigit(static_cast<unsigned char>(notes[i])) != 0;
         i += 2) {
      id.push_back(static_cast<char>(std::stoi(notes.substr(i, 2), nullptr, 16)));
    }
    std::string bytes = read_file(program());
    const std::size_t where = bytes.find(id);
    ASSERT_NE(where, std::string::npos);
    bytes[where] = static_cast<char>(bytes[where] ^ 1);
    std::ofstream(program(), std::ios::binary) << bytes;
  }
};

TEST_F(ProgramTest, AnotherBuildIsRestoredIfOnlyItsSizeIsCompared) {
  dump();
  change_build_id();
  const Outcome checked = kymod_.kymo({"check", checkpoint(), "--criu", criu_path()});
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find("(failure file-buildid)"), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find(program()), std::string::npos) << checked.out;
  const Outcome refused = kymod_.kymo({"restore", checkpoint()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("(failure file-buildid"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--file-validation filesize"), std::string::npos) << refused.err;
  restore({"--file-validation", "filesize"});
}

TEST_F(ProgramTest, AnotherBuildIsRestoredIfTheDumpKeptNoBuildId) {
  for (const char* how : {"--no-stream", "--stream"}) {
    dump({how, "--file-validation", "filesize"});
    change_build_id();
    restore();
    EXPECT_EQ(kymod_.kymo({"delete", checkpoint()}).exit_code, 0);
  }
}

TEST_F(SubjectsTest, ADeletedFileIsInEverySizeOfItsDump) {
  constexpr std::uint64_t kSize = std::uint64_t{64} << 20U;
  start({"ghost", kymod_.path("deleted"), std::to_string(kSize)});
  const auto check = [&] {
    return kymod_.kymo_json({"check", "process", "subject", "--ghost-limit", "128M"});
  };
  const nlohmann::json before = check();
  EXPECT_GE(before["deleted_bytes"], kSize) << before;
  EXPECT_LT(before["deleted_bytes"], kSize + (kSize >> 4U)) << before;
  const Outcome text = kymod_.kymo({"check", "process", "subject", "--ghost-limit", "128M"});
  EXPECT_NE(text.out.find(" MiB of deleted files that are in use\n"), std::string::npos)
      << text.out;
  {
    const SmallDisk disk(kymod_.path("small"), "size=50m");
    const Outcome refused = kymod_.kymo(
        {"dump", "process", "subject", "--ghost-limit", "128M", "--dir", kymod_.path("small/c")});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("there is no room for its images: about "), std::string::npos)
        << refused.err;
  }
  std::vector<std::string> words{
      "dump",          "process", "subject",         "--dir",      checkpoint(),
      "--ghost-limit", "128M",    "--leave-running", "--deadline", "1h"};
  const nlohmann::json dumped = kymod_.kymo_json(words);
  EXPECT_GE(dumped["image_bytes"], kSize) << dumped;
  const nlohmann::json after = check()["forecast"];
  EXPECT_EQ(after["dumps"], 1) << after;
  EXPECT_GE(after["written_bytes"]["low"], kSize) << after;
}

}  // namespace
}  // namespace kymo::test
