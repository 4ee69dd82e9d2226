// What an attacker can do who controls a confined process that was started by run.h or helper.h.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/confine/helper.h"
#include "base/confine/run.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/sanitizers.h"
#include "support/slow_mount.h"
#include "support/temporary_directory.h"

#define NEEDS_FILTER()                                                        \
  if (KYMO_SANITIZER) {                                                       \
    GTEST_SKIP() << "a build with a sanitizer has no filter of system calls"; \
  }

namespace kymo::confine {
namespace {

constexpr int kMaxDescriptors = 1024;

// Returns the open descriptors of this process, such as "1 2 5 ".
std::string open_descriptors() {
  std::string all;
  for (int fd = 0; fd < kMaxDescriptors; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) all += std::to_string(fd) + ' ';
  }
  return all;
}

Result<std::string> list_descriptors(const std::string&) {
  return open_descriptors();
}

// Descriptors of a program that its readers must not inherit. exec(2) closes none of them.
struct Holdings {
  Holdings() {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) sockets = {-1, -1};
  }
  std::array<int, 2> sockets{};
  FileDescriptor epoll{::epoll_create1(0)};
  FileDescriptor event{::eventfd(0, 0)};
  FileDescriptor high{::fcntl(0, F_DUPFD, 700)};
  ~Holdings() {
    for (const int socket : sockets) ::close(socket);
  }
};

TEST(TakenOverTest, AChildHasOnlyTheDescriptorsThatItIsGiven) {
  const Holdings holdings;
  const test::TemporaryDirectory folder;
  const FileDescriptor given(::open(folder.file("given", "").c_str(), O_WRONLY));
  Bounds bounds;
  bounds.descriptors = {given.get()};
  const std::string number = std::to_string(given.get());
  const Result<std::string> seen = read_confined(bounds, [] { return list_descriptors(""); });
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  // The pipe for the answer was made last, so its number comes after these.
  EXPECT_TRUE(seen->starts_with("0 1 2 " + number + " ")) << *seen;
  EXPECT_EQ(std::count(seen->begin(), seen->end(), ' '), 5) << *seen;
  const Result<int> code =
      run_confined(bounds, [&] { return open_descriptors() == "0 1 2 " + number + " " ? 0 : 1; });
  EXPECT_EQ(code.value(), 0);
}

TEST(TakenOverTest, ItsStandardInputIsEmptyUnlessItIsGiven) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor from(ends[0]);
  const FileDescriptor to(ends[1]);
  ASSERT_EQ(::write(to.get(), "xx", 2), 2);
  const FileDescriptor before(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  ASSERT_EQ(::dup2(from.get(), STDIN_FILENO), STDIN_FILENO);
  const auto read_one = [] {
    char got = 0;
    return static_cast<int>(::read(STDIN_FILENO, &got, 1));
  };
  EXPECT_EQ(run_confined({}, read_one).value(), 0);
  Bounds given;
  given.descriptors = {STDIN_FILENO};
  EXPECT_EQ(run_confined(given, read_one).value(), 1);
  Bounds named;
  named.readable = {"/dev/stdin"};
  EXPECT_EQ(run_confined(named, read_one).value(), 1);
  ::dup2(before.get(), STDIN_FILENO);
}

TEST(TakenOverTest, NothingTakesThePlaceOfAClosedStandardDescriptor) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDIN_FILENO);
    ::close(STDERR_FILENO);
    open_standard_descriptors();
    const int next = ::open("/dev/null", O_RDONLY);
    ::_exit(next > STDERR_FILENO && ::fcntl(STDIN_FILENO, F_GETFD) >= 0 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A shell names the pipe of <(...) by its descriptor.
TEST(TakenOverTest, APipeThatIsNamedByItsDescriptorIsGiven) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  ASSERT_EQ(::write(to.get(), "text", 4), 4);
  to.reset();
  Bounds bounds;
  bounds.readable = {"/dev/fd/" + std::to_string(from.get())};
  const Result<std::string> read = read_confined(bounds, [&]() -> Result<std::string> {
    const FileDescriptor opened(::open(bounds.readable[0].c_str(), O_RDONLY | O_NONBLOCK));
    return read_all(opened.get(), bounds.readable[0], 100);
  });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, "text");
}

TEST(TakenOverTest, AReaderOfTheHelperHasOnlyThePipeOfItsAnswer) {
  const Holdings holdings;
  const auto helper = Helper::start({{"list", list_descriptors}}).value();
  const Result<std::string> seen = helper->ask("list", "", {});
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  EXPECT_TRUE(seen->starts_with("0 1 2 ")) << *seen;
  EXPECT_EQ(std::count(seen->begin(), seen->end(), ' '), 4) << *seen;
}

// Asks the kernel to send SIGKILL to `victim` when something happens on any descriptor. Returns what
// the kernel permitted.
std::set<std::string> aim_at(pid_t victim) {
  std::set<std::string> done;
  for (int fd = 0; fd < kMaxDescriptors; ++fd) {
    const auto tried = [&](const char* what, bool succeeded) {
      if (succeeded) done.insert(what);
    };
    constexpr int kSetSignal = 10;  // F_SETSIG
    f_owner_ex owner{F_OWNER_PID, victim};
    tried("flags", ::fcntl(fd, F_SETFL, 0) == 0);
    tried("owner", ::fcntl(fd, F_SETOWN, victim) == 0);
    tried("owner-ex", ::fcntl(fd, F_SETOWN_EX, &owner) == 0);
    tried("signal", ::fcntl(fd, kSetSignal, SIGKILL) == 0);
    tried("async", ::fcntl(fd, F_SETFL, O_ASYNC) == 0);
    tried("notify", ::fcntl(fd, F_NOTIFY, DN_CREATE) == 0);
    tried("lease", ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0);
    tried("pipe-size", ::fcntl(fd, F_SETPIPE_SZ, 1 << 20) >= 0);
  }
  return done;
}

std::string in_words(const std::set<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += one + ' ';
  return text;
}

class Victim {
 public:
  Victim() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
};

TEST(TakenOverTest, NoSignalIsSentByWayOfAPipe) {
  NEEDS_FILTER();
  const Victim victim;
  const Result<std::string> done =
      read_confined({}, [&]() -> Result<std::string> { return in_words(aim_at(victim.pid())); });
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(*done, "");
  EXPECT_TRUE(victim.lives());
}

Result<std::string> aim_as_asked(const std::string& victim) {
  return in_words(aim_at(std::stoi(victim)));
}

TEST(TakenOverTest, NoReaderOfTheHelperSendsASignalByWayOfItsPipe) {
  NEEDS_FILTER();
  const Victim victim;
  const auto helper = Helper::start({{"aim", aim_as_asked}}).value();
  const Result<std::string> done = helper->ask("aim", std::to_string(victim.pid()), {});
  EXPECT_TRUE(victim.lives());
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(*done, "");
}

TEST(TakenOverTest, AReaderOfRootIsNobody) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto helper =
      Helper::start({{"who", [](const std::string&) { return read_file("/proc/self/status"); }}})
          .value();
  Bounds bounds;
  bounds.readable = {"/proc"};
  const Result<std::string> status = helper->ask("who", "", bounds);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_NE(status->find("Uid:\t65534\t65534\t65534\t0\n"), std::string::npos) << *status;
  EXPECT_NE(status->find("Gid:\t65534\t65534\t65534\t65534\n"), std::string::npos) << *status;
  EXPECT_NE(status->find("Groups:\t \n"), std::string::npos) << *status;
  EXPECT_NE(status->find("CapBnd:\t0000000000000000\n"), std::string::npos) << *status;
  EXPECT_NE(status->find("CapEff:\t0000000000000004\n"), std::string::npos) << *status;
  EXPECT_NE(status->find("CapPrm:\t0000000000000004\n"), std::string::npos) << *status;
}

// FUSE shows its files only to the user who mounted it, also to a process with CAP_DAC_READ_SEARCH.
TEST(TakenOverTest, AFileSystemThatServesOnlyRootIsReadAllTheSame) {
  const test::TemporaryDirectory folder;
  const std::string checkpoint = folder.folder("checkpoint");
  static_cast<void>(folder.file("checkpoint/file", "text"));
  const std::string slow = folder.folder("slow");
  const test::SlowMount mount(checkpoint, slow, "8M", test::SlowMount::Slow::reading_by_root_alone);
  if (::geteuid() != 0 || !mount.mounted()) GTEST_SKIP() << "needs root and bindfs";
  Bounds bounds;
  bounds.readable = {slow};
  const Result<std::string> read = read_confined(bounds, [&] { return read_file(slow + "/file"); });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, "text");
}

// Tries permitted system calls with those arguments that could do harm.
std::string try_arguments() {
  std::string done;
  const auto tried = [&](const char* what, bool succeeded) {
    if (succeeded) done += std::string(what) + ' ';
  };
  constexpr std::size_t kPage = 4096;
  const auto map = [](int protection) {
    return ::mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  tried("maps-code", map(PROT_READ | PROT_WRITE | PROT_EXEC) != MAP_FAILED);
  tried("maps-code", map(PROT_READ | PROT_EXEC) != MAP_FAILED);
  void* const page = map(PROT_READ | PROT_WRITE);
  tried("makes-code", ::mprotect(page, kPage, PROT_READ | PROT_EXEC) == 0);
  tried("ioctl", ::ioctl(1, 0x5452 /* FIOASYNC */, page) == 0);
  tried("ioctl", ::ioctl(1, 0x8901 /* FIOSETOWN */, page) == 0);
  tried("makes-a-namespace",
        ::syscall(SYS_clone, CLONE_THREAD | CLONE_NEWUSER, 0, 0, 0, 0) > 0 || errno != EPERM);
  tried("unshares", ::unshare(CLONE_NEWUSER) == 0);
  tried("sends", ::send(1, "", 0, 0) >= 0 || errno != EPERM);
  tried("opens-to-write", ::open("/dev/null", O_RDWR) >= 0);
  tried("opens-by-3", ::open("/dev/null", O_ACCMODE) >= 0);
  return done;
}

TEST(TakenOverTest, CallsThatItNeedsAreRefusedWithHarmfulArguments) {
  NEEDS_FILTER();
  Bounds bounds;
  bounds.readable = {"/dev/null"};
  bounds.threads = true;
  const Result<std::string> done =
      read_confined(bounds, []() -> Result<std::string> { return try_arguments(); });
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(*done, "");
}

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

void wait_for_ever() {
  for (;;) {
    timespec long_time{3600, 0};
    ::nanosleep(&long_time, nullptr);
  }
}

// Closes the pipe of the answer, and does not end.
Result<std::string> stay(const std::string& how) {
  block_all_signals();
  for (int fd = 3; how == "closed" && fd < kMaxDescriptors; ++fd) ::close(fd);
  wait_for_ever();
  return how;
}

std::string readers_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  return read_file("/proc/" + number + "/task/" + number + "/children").value();
}

TEST(TakenOverTest, AReaderThatBlocksAllSignalsIsEndedAfterItsTime) {
  const auto helper = Helper::start({{"stay", stay}}).value();
  const std::string pid = readers_of(::getpid());
  Bounds bounds;
  bounds.time = std::chrono::seconds(1);
  EXPECT_EQ(helper->ask("stay", "open", bounds).error().code, Code::resource_exhausted);
  EXPECT_EQ(helper->ask("stay", "closed", bounds).error().code, Code::resource_exhausted);
  Cancellation cancel;
  cancel.ask();
  EXPECT_EQ(helper->ask("stay", "open", {}, &cancel).error().code, Code::cancelled);
  EXPECT_TRUE(test::eventually([&] { return readers_of(std::stoi(pid)).empty(); }))
      << "a reader still runs";
}

TEST(TakenOverTest, AChildThatBlocksAllSignalsIsEndedAfterItsTime) {
  Bounds bounds;
  bounds.time = std::chrono::seconds(1);
  for (const char* how : {"open", "closed"}) {
    EXPECT_EQ(read_confined(bounds, [&] { return stay(how); }).error().code,
              Code::resource_exhausted);
  }
  const Result<int> code = run_confined(bounds, [] {
    block_all_signals();
    wait_for_ever();
    return 0;
  });
  EXPECT_EQ(code.error().code, Code::resource_exhausted);
  EXPECT_EQ(readers_of(::getpid()), "");
}

// When a process changes its credentials, the kernel forgets that the process is to end with its
// parent (PR_SET_PDEATHSIG).
TEST(TakenOverTest, AReaderEndsWithTheHelper) {
  const auto helper = Helper::start({{"stay", stay}}).value();
  const pid_t pid = std::stoi(readers_of(::getpid()));
  Cancellation cancel;
  std::jthread asker([&] { static_cast<void>(helper->ask("stay", "open", {}, &cancel)); });
  std::string reader;
  ASSERT_TRUE(test::eventually([&] { return !(reader = readers_of(pid)).empty(); }));
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(test::eventually([&] { return ::kill(std::stoi(reader), 0) != 0; }));
  cancel.ask();
}

}  // namespace
}  // namespace kymo::confine
