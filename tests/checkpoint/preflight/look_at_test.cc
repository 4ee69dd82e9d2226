// What the check finds in real processes. Each has one thing that CRIU cannot dump.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "base/sanitizers.h"
#include "checkpoint/failures/catalogue.h"
#include "checkpoint/preflight/preflight.h"
#include "checkpoint/preflight/report_messages.h"
#include "target.h"

namespace kymo::preflight {
namespace {

using test::Target;

constexpr Grade kRefuses = Grade::refuses;
constexpr Grade kWarns = Grade::warns;

Report look(pid_t pid, const Options& options = {}) {
  const Result<Report> report = look_at(pid, options);
  EXPECT_TRUE(report.ok()) << report.error().message;
  return report ? *report : Report{};
}

std::string text_of(const Report& report) {
  return json_text(to_json(report), 1);
}

const Finding* finding_of(const Report& report, const std::string& failure, Grade grade) {
  const auto at = std::find_if(
      report.findings.begin(), report.findings.end(),
      [&](const Finding& each) { return each.failure == failure && each.grade == grade; });
  return at == report.findings.end() ? nullptr : &*at;
}

std::vector<std::string> python(const char* program, const char* what, const std::string& folder) {
  return {"/usr/bin/python3", program, what, folder};
}

// A process that has what the failure is about.
struct Case {
  const char* program;
  const char* what;
  Grade grade;
  const char* failure;
  const char* evidence;  // a part of the evidence of the finding
  Options options{};
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.what;
}

constexpr const char* kStubborn = STUBBORN_PROGRAM;
constexpr const char* kTarget = TARGET_PROGRAM;

const std::vector<Case>& cases() {
  static const std::vector<Case> kAll{
      {kStubborn, "tcp-established", kRefuses, "tcp-established", "127.0.0.1:"},
      {kStubborn,
       "tcp-in-flight",
       kWarns,
       "tcp-in-flight",
       "waiting: 1",
       {.tcp_established = true}},
      {kStubborn, "socket-proto", kRefuses, "socket-proto", "descriptor 3, protocol MPTCP"},
      {kStubborn, "udp-corked", kWarns, "udp-corked", "to 127.0.0.1:9"},
      {kStubborn, "socket-unknown", kRefuses, "socket-unknown", "protocol AF_VSOCK"},
      {kStubborn, "unix-external", kRefuses, "unix-external", "descriptor 3"},
      {kStubborn,
       "unix-external",
       kRefuses,
       "unix-in-flight",
       "whose socket has no name",
       {.external_unix_sockets = true}},
      {kStubborn,
       "unix-half",
       kRefuses,
       "unix-half",
       "descriptor 3",
       {.external_unix_sockets = true}},
      {kStubborn, "unix-in-flight", kWarns, "unix-in-flight", "waiting: 1"},
      {kStubborn, "fd-unsupported", kRefuses, "fd-unsupported", "anon_inode:[userfaultfd]"},
      {kStubborn, "io-uring-fd", kRefuses, "io-uring-fd", "anon_inode:[io_uring]"},
      {kStubborn, "mapping-unsupported", kRefuses, "mapping-unsupported",
       "of anon_inode:[io_uring]"},
      {kStubborn, "bpf", kWarns, "bpf", "anon_inode:bpf-map"},
      {kStubborn, "pidfd", kRefuses, "pidfd", "pidfd of process 1)"},
      {kStubborn, "pipe-packet", kWarns, "pipe-packet", "pipe:["},
      // Only the first digits of each size are compared, because the size includes the blocks with
      // which the file system finds the data.
      {kStubborn, "ghost-big", kRefuses, "ghost-big", "ghost (deleted), 2048"},
      {kStubborn, "link-remap", kRefuses, "link-remap", "first (deleted)"},
      {kStubborn, "fsnotify", kWarns, "fsnotify", "on sysfs"},
      {kStubborn, "tun", kRefuses, "tun", "/dev/net/tun"},
      {kStubborn, "sysv-shm", kRefuses, "sysv-shm", "/SYSV"},
      {kTarget, "tcp-closing", kWarns, "tcp-established", "being opened or closed"},
      {kTarget, "traced-child", kRefuses, "freeze-timeout", "tracer"},
      {kTarget, "main-thread-ends", kRefuses, "cannot-attach", "others run on"},
      {kTarget, "orphan", kRefuses, "pid-taken", "python3, whose session is "},
      {kTarget, "lost-session", kRefuses, "session-lost", "python3, session "},
      {kTarget, "message-queue", kRefuses, "mount-lookup", "a POSIX message queue is open"},
      {kTarget, "secret-memory", kRefuses, "secret-memory", "descriptor 3, /secretmem"},
      {kTarget, "secret-mapping", kRefuses, "secret-memory", "of /secretmem"},
      {kTarget, "huge-pages", kWarns, "huge-pages", "in pages of 2048 KiB"},
      {kTarget, "few-files", kRefuses, "nofile-low", "may open 6, has 3"},
      {kTarget, "other-user", kRefuses, "limits-unseen", "uid 65534"},
      {kTarget, "nested-names", kRefuses, "nested-ns", "uts:["},
      {kTarget, "time-of-children", kRefuses, "nested-ns", "time:["},
      {kTarget, "thread-names", kRefuses, "nested-ns", ", uts:["},
      {kTarget, "thread-files", kRefuses, "fd-unsupported", "thread "},
      {kTarget, "thread-folders", kWarns, "mnt-chroot", "thread "},
      {kTarget, "lost-mount", kRefuses, "mount-lookup", "descriptor 3, "},
      {kTarget, "covered-mount", kRefuses, "overmounted", "/covered/file"},
      {kTarget, "inherited-files", kRefuses, "mount-lookup", "descriptor 100, /dev/null"},
      {kTarget, "slave-mount", kWarns, "mnt-sharing", "/shared"},
      {kTarget, "chrooted", kWarns, "mnt-chroot", "root /usr"},
      {kTarget, "probed", kWarns, "uprobes", "of [uprobes]"},
      {kTarget, "netlink-unread", kWarns, "netlink-data", "bytes unread"},
      {kTarget, "epoll-closed", kWarns, "epoll", "watches descriptor"},
      {kTarget, "big-deleted-mapping", kRefuses, "ghost-big", "library (deleted), 30"},
      {kTarget, "kvm", kRefuses, "fd-unsupported", "/dev/kvm, device 10:232"}};
  return kAll;
}

class FoundTest : public testing::TestWithParam<Case> {};

TEST_P(FoundTest, IsFoundWithEvidenceAndRemedy) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may make such processes";
  const Case& of = GetParam();
  const test::TemporaryDirectory folder;
  const Target target(python(of.program, of.what, folder.path()));
  if (!target.is_ready()) {
    ASSERT_TRUE(target.printed().starts_with("cannot: ")) << target.printed();
    GTEST_SKIP() << target.printed();
  }
  const pid_t pid = target.child() != 0 ? target.child() : target.pid();
  const Report report = look(pid, of.options);
  const Finding* finding = finding_of(report, of.failure, of.grade);
  ASSERT_NE(finding, nullptr) << text_of(report);
  const std::string line = line_of(*finding);
  EXPECT_NE(line.find(of.evidence), std::string::npos) << line;
  EXPECT_NE(line.find("(failure " + std::string(of.failure) + ")"), std::string::npos) << line;
  EXPECT_EQ(failures::entry_of(finding->failure).id, of.failure)
      << "the catalogue must have this failure";
  EXPECT_EQ(report.not_seen, std::vector<std::string>());
  // There must be no other finding, except for a ring of io_uring, whose file is open, too.
  for (const Finding& other : report.findings) {
    EXPECT_TRUE(other.failure == of.failure || other.failure == "io-uring-fd") << line_of(other);
  }
}

std::string name_of(const testing::TestParamInfo<Case>& of) {
  std::string name = std::string(of.param.what) + "_" + of.param.failure;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, FoundTest, testing::ValuesIn(cases()), name_of);

class LookAtTest : public testing::Test {
 protected:
  Target start(const char* what) { return Target(python(kTarget, what, folder_.path())); }
  test::TemporaryDirectory folder_;
};

TEST_F(LookAtTest, SaysNothingOfWhatCriuCanDump) {
  const Target target = start("plain");
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Report report = look(target.pid());
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
  EXPECT_EQ(report.not_seen, std::vector<std::string>());
  EXPECT_EQ(report.ended, std::vector<pid_t>());
  EXPECT_EQ(report.processes, 1U);
  EXPECT_GT(report.memory_bytes, 1U << 20U);
}

TEST_F(LookAtTest, SaysNothingOfAShell) {
  const Target target({"/bin/sh", "-c", "sleep 600 & sleep 600 & echo ready; wait"});
  ASSERT_TRUE(target.is_ready());
  const Report report = look(target.pid());
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
  EXPECT_EQ(report.processes, 3U);
}

TEST_F(LookAtTest, OptionsOfTheDumpTakeFindingsAway) {
  const Target connected(python(kStubborn, "tcp-established", folder_.path()));
  ASSERT_TRUE(connected.is_ready());
  EXPECT_EQ(look(connected.pid()).refusing(), 1U);
  EXPECT_EQ(look(connected.pid(), {.tcp_established = true}).findings.size(), 0U);
  const Target big(python(kTarget, "big-deleted-mapping", folder_.path()));
  ASSERT_TRUE(big.is_ready());
  EXPECT_EQ(look(big.pid(), {.ghost_limit_bytes = 4U << 20U}).findings.size(), 0U);
  const Report seen = look(big.pid());
  EXPECT_GE(seen.deleted_bytes, 3U << 20U);
  EXPECT_LT(seen.deleted_bytes, 4U << 20U);
  EXPECT_EQ(seen.bytes_to_write(), seen.memory_bytes + seen.deleted_bytes);
  const Target renamed(python(kStubborn, "link-remap", folder_.path()));
  ASSERT_TRUE(renamed.is_ready());
  EXPECT_EQ(look(renamed.pid(), {.link_remap = true}).findings.size(), 0U);
  const Target waiting(python(kStubborn, "tcp-in-flight", folder_.path()));
  ASSERT_TRUE(waiting.is_ready());
  const Options both{.tcp_established = true, .skip_in_flight = true};
  EXPECT_EQ(look(waiting.pid(), both).findings.size(), 0U);
  const Target device(python(kTarget, "kvm", folder_.path()));
  if (device.is_ready()) {
    EXPECT_EQ(look(device.pid(), {.external = {"dev[10/232]:kvm"}}).findings.size(), 0U);
  }
}

TEST_F(LookAtTest, AProcessInTheSessionOfAnotherNeedsShellJob) {
  const Target target(test::kInASession);
  ASSERT_TRUE(target.is_ready());
  const Report report = look(target.child());
  const Finding* finding = finding_of(report, "tty-session", kRefuses);
  ASSERT_NE(finding, nullptr) << text_of(report);
  EXPECT_EQ(finding_of(look(target.child(), {.shell_job = true}), "tty-session", kRefuses),
            nullptr);
}

TEST_F(LookAtTest, ATerminalOfAnotherProcessIsNamed) {
  const FileDescriptor controller(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(controller.valid() && grantpt(controller.get()) == 0 &&
              unlockpt(controller.get()) == 0);
  const std::string path = ptsname(controller.get());
  const FileDescriptor terminal(open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  const Target target({"/bin/sleep", "600"}, Program::Leads::session, terminal.get());
  const Report report = look(target.pid());
  const Finding* finding = finding_of(report, "tty-external", kRefuses);
  ASSERT_NE(finding, nullptr) << text_of(report);
  EXPECT_NE(line_of(*finding).find(path), std::string::npos) << line_of(*finding);
}

TEST_F(LookAtTest, ACopyOfAWatchedFileIsFoundByCriu) {
  const Target target = start("epoll-copied");
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Report report = look(target.pid());
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
}

TEST_F(LookAtTest, ATracerOfTheFirstProcessIsNamed) {
  const Target target({"/bin/sleep", "600"});
  ASSERT_EQ(ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr), 0);
  const Report report = look(target.pid());
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, target.pid(), nullptr, nullptr), 0);
  waitpid(target.pid(), nullptr, __WALL);
  ASSERT_EQ(ptrace(PTRACE_DETACH, target.pid(), nullptr, nullptr), 0);
  const Finding* finding = finding_of(report, "cannot-attach", kRefuses);
  ASSERT_NE(finding, nullptr) << text_of(report);
  EXPECT_NE(line_of(*finding).find("tracer " + std::to_string(getpid())), std::string::npos);
}

TEST_F(LookAtTest, AFileWhoseNameEndsLikeThatOfADeletedOneIsThere) {
  const Target target = start("file-named-deleted");
  ASSERT_TRUE(target.is_ready());
  EXPECT_TRUE(look(target.pid()).findings.empty());
}

TEST_F(LookAtTest, SocketsOfAnotherNetworkNamespaceAreNotClaimedToBeSeen) {
  const Target target = start("own-net-unix-pair");
  if (!target.is_ready()) GTEST_SKIP() << target.printed();
  const Report report = look(target.pid());
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
  ASSERT_EQ(report.not_seen.size(), 1U);
  EXPECT_TRUE(report.not_seen[0].starts_with("peers of unix sockets of process"))
      << report.not_seen[0];
}

TEST_F(LookAtTest, SaysWhereItStoppedToCount) {
  const Target target = start("many-files");
  ASSERT_TRUE(target.is_ready()) << target.printed();
  const Report report = look(target.pid());
  ASSERT_EQ(report.not_seen.size(), 1U);
  EXPECT_NE(report.not_seen[0].find("more than 4096"), std::string::npos) << report.not_seen[0];
}

TEST_F(LookAtTest, OfAnotherUsersProcessItSaysWhatItCannotSee) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Target target({"/bin/sleep", "600"});
  const pid_t child = fork();
  if (child == 0) {
    const bool other = setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
    const Result<Report> report = look_at(target.pid());
    const bool said = report.ok() && report->refusing() == 0 && report->not_seen.size() == 1 &&
                      report->not_seen[0].find("root") != std::string::npos &&
                      report->not_seen[0].find(std::to_string(target.pid())) != std::string::npos;
    _exit(other && said ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// "To write 96 KiB", of 200 MiB: after a restore, shared memory is in nobody's page tables until it is touched.
TEST_F(LookAtTest, SharedMemoryThatNobodyHasTouchedIsWritten) {
  const Target target = start("shared-memory");
  ASSERT_TRUE(target.is_ready()) << target.printed();
  constexpr std::uint64_t kShared = 32U << 20U;
  const std::uint64_t bytes = look(target.pid()).memory_bytes;
  EXPECT_GE(bytes, kShared);
  EXPECT_LT(bytes, 2 * kShared) << "each object counts once";
}

// CRIU gives back what it may, and says nothing of the rest.
TEST_F(LookAtTest, ALimitAboveOursIsNotRestoredWithoutTheRightToRaiseIt) {
  if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1) GTEST_SKIP() << "has CAP_SYS_RESOURCE";
  const Target target({"/bin/sleep", "600"});
  EXPECT_EQ(finding_of(look(target.pid()), "not-restored", kWarns), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{64, 64};
    setrlimit(RLIMIT_NOFILE, &low);
    _exit(finding_of(look(target.pid()), "not-restored", kWarns) != nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(LookAtTest, RefusesWhatIsNoProcessToDump) {
  EXPECT_EQ(look_at(0).error().code, Code::invalid_argument);
  EXPECT_EQ(look_at(1).error().code, Code::invalid_argument);
  EXPECT_EQ(look_at(99999999).error().code, Code::not_found);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const Result<Report> zombie = look_at(child);
  waitpid(child, nullptr, 0);
  ASSERT_FALSE(zombie.ok());
  EXPECT_NE(zombie.error().message.find("has ended"), std::string::npos) << zombie.error().message;
}

// A tree in which processes start and end all the time.
TEST_F(LookAtTest, ProcessesMayEndWhileItLooks) {
  const Target target({"/bin/sh", "-c", "echo ready; while :; do /bin/true & /bin/true; done"});
  ASSERT_TRUE(target.is_ready());
  for (int i = 0; i < 100; ++i) {
    const Report report = look(target.pid());
    EXPECT_TRUE(report.findings.empty()) << text_of(report);
  }
}

TEST_F(LookAtTest, AChildThatBeganMeanwhileIsNoProcessOutside) {
  const Target target = start("forking-pairs");
  ASSERT_TRUE(target.is_ready()) << target.printed();
  for (int i = 0; i < 300; ++i) {
    const Report report = look(target.pid());
    EXPECT_EQ(report.refusing(), 0U) << text_of(report);
  }
}

TEST_F(LookAtTest, ATargetThatEndsIsAnErrorOfOneLine) {
  for (int i = 0; i < 50; ++i) {
    Target target(
        {"/bin/sh", "-c", "read line </dev/null; i=0; while [ $i -lt 200 ]; do i=$((i+1)); done"});
    for (;;) {
      const Result<Report> report = look_at(target.pid());
      if (report) continue;
      EXPECT_EQ(report.error().code, Code::not_found);
      EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
      break;
    }
  }
}

TEST_F(LookAtTest, ManyPlacesAreOneFinding) {
  Finding finding{kRefuses, "tcp-established", "what", "Remedy.", 7, {}};
  for (int fd = 3; fd < 10; ++fd) finding.places.push_back({12, "web", fd, "a to b"});
  EXPECT_EQ(line_of(finding),
            "what (process 12 web, descriptor 3, a to b; process 12 web, descriptor 4, a to b; "
            "process 12 web, descriptor 5, a to b; and 4 more). Remedy. (failure tcp-established)");
}

TEST_F(LookAtTest, JsonHasEachPlace) {
  const Target target(python(kStubborn, "tcp-established", folder_.path()));
  ASSERT_TRUE(target.is_ready());
  const nlohmann::json json = to_json(look(target.pid()));
  EXPECT_EQ(json["pid"], target.pid());
  EXPECT_EQ(json["refusing"], 1);
  ASSERT_EQ(json["findings"].size(), 1U);
  const nlohmann::json& finding = json["findings"][0];
  EXPECT_EQ(finding["grade"], "refuses");
  EXPECT_EQ(finding["failure"], "tcp-established");
  EXPECT_EQ(finding["count"], 2);
  EXPECT_EQ(finding["places"][0]["pid"], target.pid());
  EXPECT_GE(finding["places"][0]["fd"], 3);
}

double ms_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(PreflightLimits, ALookThatReadsTooMuchGivesUp) {
  const Target target({"/bin/sh", "-c", "echo ready; sleep 600; true"});
  ASSERT_TRUE(target.is_ready());
  const Result<Report> few = look_at(target.pid(), {}, {.bytes = 100});
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code, Code::resource_exhausted) << few.error().message;
}

TEST(PreflightLimits, ALookThatTakesTooLongGivesUp) {
  const Target target({"/usr/bin/python3", "-c",
                       "import os, resource, time\n"
                       "resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))\n"
                       "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(4000)]\n"
                       "print('ready', flush=True)\n"
                       "time.sleep(600)"});
  ASSERT_TRUE(target.is_ready());
  const Result<Report> late =
      // The time is over already.
      look_at(target.pid(), {}, {.time = std::chrono::milliseconds(-1)});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::resource_exhausted) << late.error().message;
  EXPECT_TRUE(look_at(target.pid(), {}, {.time = std::chrono::minutes(5)}).ok());
}

TEST(PreflightReports, AReportIsTheSameBehindTheApi) {
  Report report;
  report.pid = 12;
  report.processes = 2;
  report.memory_bytes = 4096;
  report.deleted_bytes = 8192;
  report.findings.push_back(
      {kRefuses, "ghost-big", "what", "remedy", 3, {{12, "one", 7, "/a"}, {13, "two", -1, ""}}});
  report.findings.push_back({kWarns, "epoll", "other", "none", 1, {{12, "one", 0, "/b"}}});
  report.ended = {14};
  report.not_seen = {"files"};
  EXPECT_EQ(text_of(report_of(to_api(report))), text_of(report));
}

// docs/preflight.md makes this claim. The test measures CPU time, so that a busy machine does not
// make it fail.
TEST(PreflightTime, AnOrdinaryProcessTakesAtMostFiveMilliseconds) {
  const test::TemporaryDirectory folder;
  const Target target(python(kTarget, "ordinary", folder.path()));
  ASSERT_TRUE(target.is_ready());
  std::vector<double> cpu_ms;
  std::vector<double> wall_ms;
  for (int i = 0; i < 101; ++i) {
    const double cpu = ms_of(CLOCK_THREAD_CPUTIME_ID);
    const double wall = ms_of(CLOCK_MONOTONIC);
    look(target.pid());
    cpu_ms.push_back(ms_of(CLOCK_THREAD_CPUTIME_ID) - cpu);
    wall_ms.push_back(ms_of(CLOCK_MONOTONIC) - wall);
  }
  std::printf("median %.2f ms, of which %.2f ms of a CPU\n", median_of(wall_ms), median_of(cpu_ms));
  EXPECT_LE(median_of(cpu_ms), KYMO_SANITIZER ? 100.0 : 5.0);
  EXPECT_GT(median_of(cpu_ms), 0.0);
}

}  // namespace
}  // namespace kymo::preflight
