#include "checkpoint/failures/root_line.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "base/sanitizers.h"

namespace kymo::failures {
namespace {

Root root_of(std::string_view log) {
  RootFinder finder;
  finder.add(log);
  return finder.finish();
}

constexpr std::string_view kLocks =
    "(00.000001) Error (criu/rlimit.c:12): rlimit: Can't setup RLIMIT_NOFILE for self: No\n"
    "(00.000900) Warn  (criu/kerndat.c:12): Something\n"
    "(00.001000) Error (criu/sockets.c:92): Diag module missing (-2)\n"
    "(00.010000) Dumping processes (pid: 77 comm: app)\n"
    "(00.020000) Collecting fds (pid: 78)\n"
    "(00.030000) Error (criu/file-lock.c:113): Some file locks are hold by dumping tasks! You can\n"
    "(00.031000) Error (criu/cr-dump.c:1): Dump files (pid: 78) failed with -1\n"
    "(00.032000) Error (criu/cr-dump.c:2111): Dumping FAILED.\n";

TEST(RootLine, IsTheFirstErrorThatIsNoiseNorProbeNorStep) {
  const Root root = root_of(kLocks);
  EXPECT_EQ(root.line,
            "Error (criu/file-lock.c:113): Some file locks are hold by dumping tasks! You can");
  EXPECT_EQ(root.pid, 78U);
  EXPECT_EQ(root.step, "Collecting fds (pid: 78)");
  EXPECT_TRUE(root.failed);
  EXPECT_FALSE(root.only_step);
}

TEST(RootLine, IsTheSameHoweverTheLogIsCutIntoPieces) {
  const Root whole = root_of(kLocks);
  for (std::size_t at = 0; at <= kLocks.size(); ++at) {
    RootFinder finder;
    finder.add(kLocks.substr(0, at));
    finder.add(kLocks.substr(at));
    ASSERT_EQ(finder.finish().line, whole.line) << at;
    static_cast<void>(root_of(kLocks.substr(at)));
    static_cast<void>(root_of(kLocks.substr(0, at)));
  }
}

TEST(RootLine, ReadsErrorsOfTheRestorerAndThoseBehindAnothersText) {
  EXPECT_EQ(root_of("(00.1) pie: 12: Error (criu/pie/restorer.c:1): prctl failed @2\n").line,
            "Error (criu/pie/restorer.c:1): prctl failed @2");
  EXPECT_EQ(root_of("(00.1) pie: 12: Error (criu/pie/restorer.c:1): prctl failed @2\n").pid, 12U);
  EXPECT_EQ(root_of("(00.1)     12: Error (criu/files-reg.c:1): File a has bad size 1\n").line,
            "Error (criu/files-reg.c:1): File a has bad size 1");
  EXPECT_EQ(root_of("some program(00.1) Error (criu/a.c:1): late\n").line,
            "Error (criu/a.c:1): late");
}

TEST(RootLine, IsTheWarningIfCriuCouldNotAttach) {
  const Root root = root_of(
      "(00.1) Warn  (compel/src/lib/infect.c:139): Unable to interrupt task: 5 (Operation not "
      "permitted)\n"
      "(00.2) Error (compel/src/lib/infect.c:1): Unable to detach from 5: No such process\n"
      "(00.3) Error (criu/cr-dump.c:1): Dumping FAILED.\n");
  EXPECT_NE(root.line.find("Unable to interrupt task: 5 (Operation"), std::string::npos);
}

TEST(RootLine, IsAProbeOnlyIfLookingAtTheKernelFailed) {
  const std::string probe = "(00.1) Error (criu/net.c:1): Unable create a network namespace: No\n";
  EXPECT_EQ(root_of(probe).line, "");
  EXPECT_NE(root_of(probe + "(00.2) Error (criu/kerndat.c:1): kerndat_nsid failed when "
                            "initializing kerndat.\n")
                .line.find("network namespace"),
            std::string::npos);
}

// The kernel refuses one of CRIU's own tests with the same words as an action of a restored
// process.
TEST(RootLine, IsWhatTheKernelRefusedToARestoredProcess) {
  const Root root = root_of(
      "2026-04-20T20:18:39.88Z b'(00.1)      7: Error (criu/libnetlink.c:54): -1 reported by "
      "netlink'\n"
      "2026-04-20T20:18:39.88Z b\"(00.2)      7: Error (criu/net.c:1823): net: Can't restore "
      "link\"\n");
  EXPECT_NE(root.line.find("reported by netlink"), std::string::npos) << root.line;
  EXPECT_FALSE(root.probe);
  EXPECT_EQ(root.pid, 7U);
  EXPECT_TRUE(root_of("(00.1) Error (criu/libnetlink.c:54): -1 reported by netlink\n"
                      "(00.2) Error (criu/kerndat.c:1): x failed when initializing kerndat.\n")
                  .probe);
}

// At a limit of processes, only the tar that CRIU calls says why it failed.
TEST(RootLine, IsTheReasonOfTheTarThatCouldNotFork) {
  const Root root = root_of(
      "(00.1)      1: mnt-v2: \tMounting tmpfs @193 (0)\n"
      "tar (child): child process: Cannot fork: Resource temporarily unavailable\n"
      "tar: Error is not recoverable: exiting now\n"
      "(00.2)      1: Error (criu/util.c:657): exited, status=2\n"
      "(00.3)      1: Error (criu/filesystems.c:460): Can't restore tmpfs content\n"
      "(00.4) Error (criu/cr-restore.c:2331): Restoring FAILED.\n");
  EXPECT_EQ(root.line, "tar (child): child process: Cannot fork: Resource temporarily unavailable");
}

TEST(RootLine, IsAStepOrASilentLineIfThereIsNothingElse) {
  const std::string step = "(00.1) Error (criu/cr-dump.c:1): Collect mappings (pid: 4) failed\n";
  EXPECT_TRUE(root_of(step).only_step);
  const Root silent =
      root_of("(00.1) Sockects collect procedure family AF_UNIX protocol 0: -2\n" + step);
  EXPECT_NE(silent.line.find("collect procedure"), std::string::npos);
  EXPECT_FALSE(silent.only_step);
}

TEST(RootLine, IsNoSilentLineIfNothingFailed) {
  EXPECT_EQ(root_of("(00.1) Sockets collect procedure family AF_INET proto IPPROTO_RAW: -2\n"
                    "(00.2) Dumping finished successfully\n")
                .line,
            "");
}

TEST(RootLine, IsOneOfTheLastRun) {
  const Root root = root_of(std::string(kLocks) +
                            "(00.1) Dumping processes (pid: 9 comm: x)\n"
                            "(00.2) Error (criu/a.c:2): the second run\n");
  EXPECT_EQ(root.line, "Error (criu/a.c:2): the second run");
}

TEST(RootLine, CutsALineThatDoesNotEnd) {
  const Root root = root_of("(0.1) Error (criu/a.c:1): " + std::string(1 << 20, 'x'));
  EXPECT_LE(root.line.size(), RootFinder::kMaxLine);
}

// Writes a log of 1 GiB, or less with a sanitizer, into `fd`.
void write_much(int fd) {
  constexpr std::size_t kAll = std::size_t{KYMO_SANITIZER ? 1 : 16} << 26U;
  std::string piece;
  while (piece.size() < (std::size_t{1} << 20)) piece += "(00.1) pie: 7: `- returned so much\n";
  for (std::size_t sent = 0; sent < kAll; sent += piece.size()) {
    std::string_view left = piece;
    while (!left.empty()) {
      const ssize_t put = write(fd, left.data(), left.size());
      if (put <= 0) return;
      left.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  const std::string_view end = "(99.1) Error (criu/a.c:1): at last\n";
  static_cast<void>(!write(fd, end.data(), end.size()));
}

TEST(RootLine, WhatCriuSaysBeforeItHasALogIsFound) {
  const Root root = root_of(
      "CRIU needs to have the CAP_SYS_ADMIN or the CAP_CHECKPOINT_RESTORE capability: \n"
      "setcap cap_checkpoint_restore+eip /usr/sbin/criu\n"
      "(00.000000) Effective capability 40 missing\n");
  EXPECT_TRUE(root.line.starts_with("CRIU needs to have the CAP_SYS_ADMIN")) << root.line;
  EXPECT_TRUE(root.is_log);
}

// CRIU's error says only that a program failed. The program's own message says that it is too old.
TEST(RootLine, WhatAProgramSaysThatIsTooOldIsFound) {
  const Root root = root_of(
      "iptables-restore: invalid option -- 'w'\n"
      "(00.117584) Error (criu/util.c:764): exited, status=1\n"
      "(00.137415) Error (criu/cr-dump.c:1819): Dumping FAILED.\n");
  EXPECT_EQ(root.line, "iptables-restore: invalid option -- 'w'");
}

TEST(RootLine, OfOneGigabyteIsFoundInLittleMemory) {
  constexpr long kMaxKilobytes = 16 * 1024;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    write_much(ends[1]);
    close(ends[1]);
  });
  const Root root = read_root(ends[0]);
  close(ends[0]);
  writer.join();
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(root.line, "Error (criu/a.c:1): at last");
  EXPECT_LE(after.ru_maxrss - before.ru_maxrss, kMaxKilobytes);
}

}  // namespace
}  // namespace kymo::failures
