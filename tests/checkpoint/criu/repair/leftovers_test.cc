#include "checkpoint/criu/repair/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/proc/process.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

// Starts a process of this user that opens the file in this mode and waits.
pid_t start_with_open(const std::string& path, int mode, uid_t user = geteuid()) {
  const int file = open(path.c_str(), mode | O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    if (user != geteuid() && setresuid(user, user, user) != 0) _exit(1);
    for (;;) pause();
  }
  close(file);
  return child;
}

// Whether the child has been killed. Ends it in any case.
bool was_killed(pid_t child) {
  siginfo_t seen{};
  waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOHANG | WNOWAIT);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return seen.si_pid != 0;
}

bool is_killed(pid_t child) {
  return test::eventually([&] {
    siginfo_t seen{};
    waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOHANG | WNOWAIT);
    return seen.si_pid == child;
  });
}

// containerd's shim reads the log of a CRIU that failed.
TEST(LeftoversTest, WhoReadsTheLogIsNotTakenForCriu) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.file("dump.log", "(00.000000) Version: 4.2.1\n");
  const pid_t criu = start_with_open(log, O_WRONLY);
  const pid_t reader = start_with_open(log, O_RDONLY);
  EXPECT_TRUE(end_leftover_dump(log, {}).ok());
  EXPECT_TRUE(is_killed(criu));
  siginfo_t seen{};
  waitid(P_PID, static_cast<id_t>(reader), &seen, WEXITED | WNOHANG | WNOWAIT);
  EXPECT_EQ(seen.si_pid, 0) << "the reader was killed";
  for (const pid_t child : {criu, reader}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// A checkpoint may have a link in place of the log.
TEST(LeftoversTest, ALinkInPlaceOfTheLogIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string other = folder.folder("others") + "/restore.log";
  std::ofstream(other) << "(00.000000) Version: 4.2.1\n";
  const std::string log = folder.path() + "/restore.log";
  std::filesystem::create_symlink(other, log);
  const pid_t writer = start_with_open(other, O_WRONLY);
  EXPECT_TRUE(end_leftover_restore(log, {}).ok());
  siginfo_t seen{};
  waitid(P_PID, static_cast<id_t>(writer), &seen, WEXITED | WNOHANG | WNOWAIT);
  EXPECT_EQ(seen.si_pid, 0) << "a process that only writes to the target was killed";
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
}

TEST(LeftoversTest, AFileThatSomebodyElseCouldHavePutThereShowsNoCriu) {
  const test::TemporaryDirectory folder;
  const std::string other = folder.file("other.log", "(00.000000) Version: 4.2.1\n");
  const std::string theirs = folder.folder("theirs");
  const std::string log = theirs + "/dump.log";
  std::filesystem::create_hard_link(other, log);
  const pid_t writer = start_with_open(log, O_WRONLY);
  const Result<void> by_name = end_leftover_dump(log, {});
  EXPECT_EQ(by_name.error().code, Code::permission_denied);
  EXPECT_NE(by_name.error().message.find(log + ": it has another name"), std::string::npos)
      << by_name.error().message;
  EXPECT_FALSE(was_killed(writer));
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  std::filesystem::remove(other);
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  const pid_t again = start_with_open(log, O_WRONLY);
  for (const Result<void>& ended : {end_leftover_dump(log, {}), end_leftover_restore(log, {})}) {
    EXPECT_EQ(ended.error().code, Code::permission_denied);
    EXPECT_NE(ended.error().message.find(theirs + ": it belongs to uid 65534"), std::string::npos)
        << ended.error().message;
  }
  EXPECT_FALSE(was_killed(again));
}

// They have logs of the same name open, but not this file.
TEST(LeftoversTest, OtherProcessesThatWriteToALogOfThisNameRunOn) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const test::TemporaryDirectory folder;
  const std::string log = folder.file("dump.log", "(00.000000) Version: 4.2.1\n");
  const std::string of_root = folder.folder("root") + "/dump.log";
  const std::string of_other = folder.folder("other") + "/dump.log";
  std::ofstream(of_root) << "its own";
  std::ofstream(of_other) << "its own";
  const pid_t criu = start_with_open(log, O_WRONLY);
  const pid_t root = start_with_open(of_root, O_WRONLY);
  const pid_t other = start_with_open(of_other, O_WRONLY, 65534);
  EXPECT_TRUE(end_leftover_dump(log, {}).ok());
  EXPECT_TRUE(is_killed(criu));
  waitpid(criu, nullptr, 0);
  EXPECT_FALSE(was_killed(root));
  EXPECT_FALSE(was_killed(other));
}

// Starts a process that traces the target, and then has these words in its command line.
pid_t trace_by(pid_t target, const char* name, const char* word) {
  const pid_t tracer = fork();
  if (tracer == 0) {
    if (ptrace(PTRACE_SEIZE, target, nullptr, nullptr) != 0) _exit(1);
    execl("/bin/sh", name, "-c", "kill -STOP $$", word, "3", nullptr);
    _exit(1);
  }
  EXPECT_TRUE(test::eventually([&] {
    const auto seen = probe::read_process(tracer);
    return seen && seen->stopped() && probe::read_process(target)->tracer == tracer;
  }));
  return tracer;
}

// While the disk of the log was silent, each tracer of the process counted as its CRIU, and was killed.
TEST(LeftoversTest, WithoutAnAnswerOfTheDiskADebuggerOfTheProcessIsNotTakenForCriu) {
  const test::TemporaryDirectory folder;
  const test::MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string log = disk.path() + "/dump.log";
  std::ofstream(log) << "(00.000000) Version: 4.2.1\n";
  const pid_t target = start_with_open("/dev/null", O_RDONLY);
  disk.be("is-silent");
  const pid_t debugger = trace_by(target, "gdb", "-p");
  EXPECT_TRUE(end_leftover_dump(log, {target}).ok());
  EXPECT_FALSE(was_killed(debugger));
  const pid_t criu = trace_by(target, "criu", "swrk");
  EXPECT_TRUE(end_leftover_dump(log, {target}).ok());
  EXPECT_TRUE(was_killed(criu));
  disk.be("well");
  EXPECT_FALSE(was_killed(target));
}

}  // namespace
}  // namespace kymo::criu
