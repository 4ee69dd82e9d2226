#include "checkpoint/runtimes/shared/aftermath.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "support/loopback.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// Does what CRIU's parasite does, in a mapping with the parasite's name: it runs for some tens of milliseconds, and
// then reaches a trap. A second thread waits meanwhile.
[[noreturn]] void run_into_a_trap() {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  // mov rcx, 100'000'000; again: dec rcx; jnz again; int3
  constexpr std::array<unsigned char, 14> kCode{0x48, 0xc7, 0xc1, 0x00, 0xe1, 0xf5, 0x05,
                                                0x48, 0xff, 0xc9, 0x75, 0xfb, 0xcc, 0xcc};
  const int fd = ::memfd_create("CRIUMFD", 0);
  if (fd < 0 || ::ftruncate(fd, 4096) != 0) ::_exit(1);
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
  if (code == MAP_FAILED) ::_exit(1);
  std::memcpy(code, kCode.data(), kCode.size());
  void (*run)() = nullptr;
  std::memcpy(&run, &code, sizeof run);
  ::signal(SIGTRAP, SIG_DFL);
  run();
  ::_exit(1);
}

TEST(AftermathTest, AProcessThatEndsInCriusTrapIsNotSaidToRunOn) {
  const pid_t child = ::fork();
  if (child == 0) run_into_a_trap();
  ASSERT_TRUE(test::eventually([&] {
    const auto maps = read_file("/proc/" + std::to_string(child) + "/maps");
    return maps && maps->find("CRIUMFD") != std::string::npos;
  }));
  DumpTarget before;
  before.process = probe::read_process(child).value();
  before.tree = {{child, before.process.start_ticks}};
  DumpOutcome outcome;
  const Result<void> left =
      conclude_failed_dump({}, before, {Code::internal, "criu failed"}, outcome);
  int status = 0;
  // waitpid() would not return the child if one of its threads were still traced.
  const bool ended = test::eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP) << status;
  EXPECT_TRUE(left.ok()) << left.error().message;
  EXPECT_TRUE(outcome.failure && outcome.failure->ended);
  if (!ended) ::kill(child, SIGKILL);
}

// A child that only waits, and whose dump has failed.
class FailedDump : public ::testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override { end(); }

  void start() {
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) ::pause();
    }
    before_.process = probe::read_process(child_).value();
    before_.tree = {{child_, before_.process.start_ticks}};
    spec_.process = before_.tree.front();
  }
  void end() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  Result<void> conclude() {
    return conclude_failed_dump(spec_, before_, {Code::internal, "criu failed"}, outcome_);
  }
  [[nodiscard]] bool is_unsure() const { return outcome_.failure && !outcome_.failure->ended; }

  test::TemporaryDirectory folder_;
  pid_t child_ = 0;
  DumpSpec spec_;
  DumpTarget before_;
  DumpOutcome outcome_;
};

TEST_F(FailedDump, AProcessThatRunsIsSaidToRunOn) {
  const Result<void> left = conclude();
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().message, "criu failed; the process runs on");
  EXPECT_FALSE(outcome_.failure);
}

TEST_F(FailedDump, OfAProcessThatHasEndedItIsSaidWhatMayBeLeft) {
  end();
  EXPECT_TRUE(conclude().ok());
  ASSERT_TRUE(outcome_.failure && outcome_.failure->ended);
  EXPECT_EQ(outcome_.failure->error.message, "criu failed");
  EXPECT_EQ(outcome_.failure->left.size(), 1U);
}

TEST_F(FailedDump, AProcessThatIsStillTracedIsNotSaidToRunOn) {
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child_, nullptr, nullptr), 0);
  EXPECT_TRUE(conclude().ok());
  ASSERT_TRUE(is_unsure());
  EXPECT_NE(outcome_.failure->why_unsure.find("is still traced by process"), std::string::npos)
      << outcome_.failure->why_unsure;
  ::ptrace(PTRACE_DETACH, child_, nullptr, nullptr);
}

// A child that has the other end of a TCP connection of this process, in repair mode, and whose tracer is not this
// process.
class TracedByAnother : public FailedDump {
 protected:
  void SetUp() override {
    FailedDump::SetUp();
    end();
    const test::Listener listener;
    connection_ = test::connect_to_loopback(listener.port);
    // The connection stays open until this process ends.
    ASSERT_GE(::accept(listener.socket.get(), nullptr, nullptr), 0);
    start();
    spec_.work_dir = folder_.folder("work");
    tracer_ = ::fork();
    if (tracer_ == 0) {
      ::ptrace(PTRACE_SEIZE, child_, nullptr, nullptr);
      for (;;) ::pause();
    }
    ASSERT_TRUE(test::eventually([&] {
      const auto seen = probe::read_process(child_);
      return seen && seen->tracer == tracer_;
    }));
    const int on = 1;
    if (::setsockopt(connection_.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) {
      GTEST_SKIP() << "the repair mode needs CAP_NET_ADMIN";
    }
  }
  void TearDown() override {
    if (tracer_ > 0) {
      ::kill(tracer_, SIGKILL);
      ::waitpid(tracer_, nullptr, 0);
    }
    FailedDump::TearDown();
    connection_.reset();
  }
  [[nodiscard]] bool in_repair() const {
    int on = 0;
    socklen_t size = sizeof on;
    return ::getsockopt(connection_.get(), IPPROTO_TCP, TCP_REPAIR, &on, &size) == 0 && on == 1;
  }
  void log(const std::string& text) { folder_.file("work/dump.log", text); }

  FileDescriptor connection_;
  pid_t tracer_ = 0;
};

TEST_F(TracedByAnother, NothingIsRepairedIfOurCriuNeverAttached) {
  log("(00.001) Error: SEIZE 12 ptrace attach failed: Operation not permitted\n");
  const Result<void> left = conclude();
  ASSERT_FALSE(left.ok());
  EXPECT_NE(left.error().message.find("nothing was changed in it"), std::string::npos)
      << left.error().message;
  EXPECT_TRUE(in_repair());
}

TEST_F(TracedByAnother, NothingIsRepairedAndTheOutcomeIsNotKnownIfOurCriuAttached) {
  log("(00.001) Seized task 12, state 0\n");
  EXPECT_TRUE(conclude().ok());
  EXPECT_TRUE(is_unsure());
  EXPECT_TRUE(in_repair());
}

}  // namespace
}  // namespace kymo::runtime
