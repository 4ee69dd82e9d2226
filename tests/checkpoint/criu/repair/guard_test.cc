#include "checkpoint/criu/repair/guard.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "base/file.h"
#include "base/pipe.h"
#include "base/proc/process.h"
#include "support/loopback.h"
#include "support/temporary_directory.h"

namespace {

bool children_have_memory = true;
bool has_memory = true;

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = has_memory ? std::malloc(size) : nullptr;  // NOLINT(*-no-malloc)
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}

namespace kymo::criu {
namespace {

// A tracer instead of CRIU, and a process that it has stopped. The process sends a byte as soon as it runs.
class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client_.valid() && server_.valid() && start_.ok() && stopped_.ok());
    target_ = fork();
    if (target_ == 0) run_target();
    criu_ = fork();
    if (criu_ == 0) run_criu();
    char one = 0;
    ASSERT_EQ(read(stopped_->from.get(), &one, 1), 1) << "no right to trace";
    ASSERT_EQ(write(start_->to.get(), "x", 1), 1);
  }
  void TearDown() override {
    for (const pid_t pid : {criu_, target_}) {
      if (pid <= 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  [[noreturn]] void run_target() const {
    char one = 0;
    if (read(start_->from.get(), &one, 1) != 1) _exit(1);
    _exit(send(client_.get(), "x", 1, MSG_NOSIGNAL) == 1 ? 0 : errno);
  }
  [[noreturn]] void run_criu() const {
    const bool stops = ptrace(PTRACE_SEIZE, target_, nullptr, nullptr) == 0 &&
                       ptrace(PTRACE_INTERRUPT, target_, nullptr, nullptr) == 0 &&
                       waitpid(target_, nullptr, __WALL) == target_;
    if (!stops || write(stopped_->to.get(), "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  [[nodiscard]] bool begin_repair() const {
    const int on = 1;
    return setsockopt(client_.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) == 0;
  }
  // CRIU is killed. What the process then sends must arrive.
  void expect_that_the_connection_works();

  test::Listener listener_;
  FileDescriptor client_{test::connect_to_loopback(listener_.port)};
  FileDescriptor server_{accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  Result<Pipe> start_ = make_pipe();
  Result<Pipe> stopped_ = make_pipe();
  pid_t target_ = 0;
  pid_t criu_ = 0;
};

void GuardTest::expect_that_the_connection_works() {
  {
    const Result<Guard> guard = Guard::start(criu_);
    ASSERT_TRUE(guard.ok()) << guard.error().message;
    kill(criu_, SIGKILL);
    kill(criu_, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(criu_, &status, 0), criu_);
    criu_ = 0;
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
  }
  int status = 0;
  ASSERT_EQ(waitpid(target_, &status, 0), target_);
  target_ = 0;
  EXPECT_EQ(status, 0) << "errno of send: " << WEXITSTATUS(status);
  EXPECT_TRUE(test::eventually([] { return waitpid(-1, nullptr, WNOHANG) == -1; }))
      << "the guard has not ended";
}

// Before there was a guard, the first send failed with EPERM, and the program ended.
TEST_F(GuardTest, AConnectionWorksWhenItsProcessRunsAfterCriuWasKilled) {
  if (!begin_repair()) GTEST_SKIP() << "no right to administer the network";
  expect_that_the_connection_works();
}

// A thread may hold a lock of the allocator when the guard is forked. With AddressSanitizer, the guard then waited for
// ever, and so did CRIU and kymod.
TEST_F(GuardTest, TheGuardNeedsNoMemory) {
  if (!begin_repair()) GTEST_SKIP() << "no right to administer the network";
  ASSERT_EQ(pthread_atfork(nullptr, nullptr, [] { has_memory = children_have_memory; }), 0);
  children_have_memory = false;
  expect_that_the_connection_works();
  children_have_memory = true;
}

// The parent must see what it sees without a guard: it stops CRIU before it kills it.
TEST_F(GuardTest, LeavesTheSignalsOfCriuAsTheyAre) {
  const Result<Guard> guard = Guard::start(criu_);
  ASSERT_TRUE(guard.ok()) << guard.error().message;
  int status = 0;
  for (int round = 0; round < 2; ++round) {
    kill(criu_, SIGSTOP);
    ASSERT_EQ(waitpid(criu_, &status, WUNTRACED), criu_);
    EXPECT_TRUE(WIFSTOPPED(status)) << status;
    kill(criu_, SIGCONT);
    ASSERT_EQ(waitpid(criu_, &status, WCONTINUED), criu_);
    EXPECT_TRUE(WIFCONTINUED(status)) << status;
  }
  kill(criu_, SIGTERM);
  ASSERT_EQ(waitpid(criu_, &status, 0), criu_);
  criu_ = 0;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

// Before, the killed CRIU waited for the guard, and its process stood still as long.
TEST_F(GuardTest, AGuardThatSomebodyHasStoppedIsWoken) {
  const Result<Guard> guard = Guard::start(criu_);
  ASSERT_TRUE(guard.ok()) << guard.error().message;
  const pid_t its_pid = probe::read_process(criu_).value().tracer;
  int status = 0;
  kill(its_pid, SIGSTOP);
  ASSERT_EQ(waitpid(its_pid, &status, WUNTRACED), its_pid);
  kill(criu_, SIGKILL);
  guard->wake();
  ASSERT_EQ(waitpid(criu_, &status, 0), criu_);
  criu_ = 0;
}

TEST_F(GuardTest, OfACriuThatIsTracedAlreadyChangesNothing) {
  const Result<Guard> first = Guard::start(criu_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  { const Result<Guard> second = Guard::start(criu_); }
  kill(criu_, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(criu_, &status, 0), criu_);
  criu_ = 0;
}

}  // namespace
}  // namespace kymo::criu
