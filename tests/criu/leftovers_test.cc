#include "criu/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

// A process that has the file open in this mode, and waits.
pid_t start_with_open(const std::string& path, int mode) {
  const int file = open(path.c_str(), mode | O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  close(file);
  return child;
}

bool is_killed(pid_t child) {
  return test::eventually([&] {
    siginfo_t seen{};
    waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOHANG | WNOWAIT);
    return seen.si_pid == child;
  });
}

// containerd's shim reads the log of a CRIU that failed. It was killed for it, and containerd ended
// the container.
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

// A checkpoint may have a link in place of the log. Whoever wrote to its target was killed.
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

}  // namespace
}  // namespace kymo::criu
