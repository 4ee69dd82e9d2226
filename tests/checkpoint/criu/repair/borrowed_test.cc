// What borrows_a_process() says of a real process that is traced in the way of CRIU.

#include "checkpoint/criu/repair/borrowed.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

using namespace std::chrono_literals;

// A child that runs `body`. This process traces it in the way of CRIU, without stopping it.
class Traced {
 public:
  explicit Traced(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      body();
      _exit(0);
    }
    ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr);
  }
  ~Traced() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void stop() const {
    ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr);
    waitpid(pid_, nullptr, 0);
  }
  void go_on() const { ptrace(PTRACE_CONT, pid_, nullptr, nullptr); }
  void go_on_at(std::uint64_t place) const {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
    registers.rip = place;
    registers.orig_rax = ~0ULL;
    ptrace(PTRACE_SETREGS, pid_, nullptr, &registers);
  }

 private:
  pid_t pid_;
};

// Maps `code` in the way in which CRIU maps its parasite.
void* map_parasite(const void* code, std::size_t size) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "CRIUMFD", 0));
  if (fd < 0 || write(fd, code, size) != static_cast<ssize_t>(size)) return MAP_FAILED;
  return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

bool borrows() {
  return borrows_a_process(getpid());
}

TEST(BorrowedTest, AProcessInItsOwnCodeIsNotBorrowed) {
  EXPECT_FALSE(borrows());
  const Traced child([] {
    for (;;) pause();
  });
  EXPECT_TRUE(test::eventually([] { return !borrows(); })) << "it waits";
  child.stop();
  EXPECT_FALSE(borrows());
}

TEST(BorrowedTest, AProcessThatRunsMayBeBorrowed) {
  const Traced child([] {
    for (;;) {
    }
  });
  EXPECT_TRUE(test::eventually(borrows));
  child.stop();
  EXPECT_FALSE(borrows()) << "it is stopped in its own code, so CRIU does not use it";
}

TEST(BorrowedTest, AProcessThatRunsTheParasiteIsBorrowed) {
  constexpr unsigned char kForEver[] = {0xeb, 0xfe};  // jmp to itself
  const Traced child([&] {
    void* code = map_parasite(kForEver, sizeof kForEver);
    if (code != MAP_FAILED) reinterpret_cast<void (*)()>(code)();
  });
  EXPECT_TRUE(test::eventually(borrows));
  EXPECT_TRUE(test::eventually([&] {  // the child needs a moment until it runs this code
    child.stop();
    if (borrows()) return true;
    child.go_on();
    return false;
  })) << "it must count as borrowed while it is stopped in the parasite";
}

TEST(BorrowedTest, AProcessWhoseParasiteWaitsForACommandIsNotBorrowed) {
  // The machine code of recvfrom(edi, ...): mov eax, 45; mov r10, rcx; syscall; ret
  constexpr unsigned char kReceive[] = {0xb8, 45, 0, 0, 0, 0x49, 0x89, 0xca, 0x0f, 0x05, 0xc3};
  static_assert(SYS_recvfrom == 45);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Traced child([&] {
    void* code = map_parasite(kReceive, sizeof kReceive);
    if (code == MAP_FAILED) return;
    char byte = 0;
    reinterpret_cast<long (*)(int, void*, std::size_t, int, void*, void*)>(code)(
        pair[1], &byte, 1, 0, nullptr, nullptr);
    for (;;) {  // the child is back in its own code
    }
  });
  EXPECT_TRUE(test::eventually([] { return !borrows(); }))
      << "the parasite waits in recvfrom for a command";
  EXPECT_EQ(write(pair[0], "x", 1), 1);
  EXPECT_TRUE(test::eventually(borrows)) << "a process that runs may be running the parasite";
  close(pair[0]);
  close(pair[1]);
}

TEST(BorrowedTest, AProcessStoppedWhereCriuWritesItsSystemCallsIsBorrowed) {
  constexpr unsigned char kCode[64] = {0xeb, 0xfe};
  void* code =
      mmap(nullptr, 4096, PROT_READ | PROT_EXEC | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, kCode, sizeof kCode);
  const Traced child([] {
    for (;;) pause();
  });
  child.stop();
  EXPECT_FALSE(borrows());
  child.go_on_at(reinterpret_cast<std::uint64_t>(code) + 2);
  EXPECT_TRUE(borrows());
  child.go_on_at(reinterpret_cast<std::uint64_t>(code) + 32);
  EXPECT_FALSE(borrows()) << "behind the first bytes the code is the program's own";
  munmap(code, 4096);
}

// Writes a /proc with one process. Its only thread has waited this long for a CPU.
void set_run_delay(const std::string& root, std::chrono::nanoseconds delay) {
  std::filesystem::create_directories(root + "/100/task/100");
  std::ofstream(root + "/100/task/100/schedstat") << "5 " << delay.count() << " 7\n";
}

TEST(BorrowingLimitTest, TheTimeInWhichCriuWaitsForAProcessorDoesNotCount) {
  const test::TemporaryDirectory folder;
  const std::string root = folder.folder("proc");
  set_run_delay(root, 1s);  // the delay before the limit starts must not count
  EXPECT_FALSE(BorrowingLimit({100}, root, 1h).over());
  const BorrowingLimit limit({100}, root, 50ms);
  std::this_thread::sleep_for(60ms);
  EXPECT_TRUE(limit.over());
  set_run_delay(root, 1s + 1h);
  EXPECT_FALSE(limit.over());
  set_run_delay(root, 1s + 1ms);
  std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(limit.over()) << "only the wait for a CPU is subtracted";
}

TEST(BorrowingLimitTest, AKernelThatDoesNotCountItChangesNothing) {
  const test::TemporaryDirectory folder;
  const BorrowingLimit limit({100}, folder.folder("proc"), 20ms);
  std::this_thread::sleep_for(30ms);
  EXPECT_TRUE(limit.over());
}

TEST(BorrowingLimitTest, AProcessThatRunsIsRunnableAndOneThatSleepsIsNot) {
  const Traced busy([] {
    for (;;) {
    }
  });
  const Traced asleep([] { pause(); });
  EXPECT_TRUE(is_runnable(busy.pid()));
  EXPECT_TRUE(test::eventually([&] { return !is_runnable(asleep.pid()); }));
}

}  // namespace
}  // namespace kymo::criu
