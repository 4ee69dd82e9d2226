// The parasite is removed from real processes, in which the test has mapped memory in the way of
// CRIU's parasite.

#include "checkpoint/criu/repair/parasite.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "support/stop_child.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

using std::chrono::milliseconds;

struct Shared {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> maps{0};
  std::atomic<bool> stop{false};
};

void map_parasite() {
  const int fd = ::memfd_create("CRIUMFD", 0);
  if (fd >= 0 && ::ftruncate(fd, 8192) == 0) {
    static_cast<void>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0));
  }
  ::close(fd);
}

// A child of this process. It is ended with this object.
class Child {
 public:
  explicit Child(const std::function<void(Shared&)>& body) {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared;
    pid_ = ::fork();
    if (pid_ == 0) {
      body(*shared_);
      ::_exit(0);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Shared& shared() const { return *shared_; }
  [[nodiscard]] bool infected() const {
    const auto maps = read_file("/proc/" + std::to_string(pid_) + "/maps");
    return maps && maps->find("CRIUMFD") != std::string::npos;
  }
  [[nodiscard]] bool counts_on() const {
    const std::uint64_t before = shared_->count;
    return test::eventually([&] { return shared_->count > before; });
  }
  int exit_status() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    return status;
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
  Shared* shared_ = nullptr;
};

void* counts(void* shared) {
  for (;;) ++static_cast<Shared*>(shared)->count;
  return nullptr;
}

TEST(ParasiteTest, OfAProcessWithoutItNothingIsTouched) {
  const Child child([](Shared& shared) {
    for (;;) ++shared.count;
  });
  const auto removed = remove_parasite(child.pid());
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(*removed, 0U);
  EXPECT_TRUE(child.counts_on());
}

// The child waits in a system call until the test itself interrupts it.
TEST(ParasiteTest, ASystemCallThatWaitsGoesOnWaiting) {
  static volatile sig_atomic_t interrupted = 0;
  Child child([](Shared& shared) {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGUSR1, &action, nullptr);
    map_parasite();
    shared.maps = 1;
    const timespec time{1000, 0};
    ::_exit(::nanosleep(&time, nullptr) != 0 && interrupted == 1 ? 7 : 1);
  });
  const auto sleeps = [&] {
    const Result<probe::Process> seen = probe::read_process(child.pid());
    return child.shared().maps == 1 && seen && seen->state == 'S';
  };
  ASSERT_TRUE(test::eventually(sleeps));
  const auto removed = remove_parasite(child.pid());
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(*removed, 1U);
  EXPECT_FALSE(child.infected());
  EXPECT_TRUE(test::eventually(sleeps));
  ::kill(child.pid(), SIGUSR1);
  const int status = child.exit_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(ParasiteTest, AReadThatWaitsGetsWhatComesLater) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Child child([&](Shared& shared) {
    map_parasite();
    map_parasite();
    shared.maps = 2;
    char byte = 0;
    ::_exit(::read(ends[0], &byte, 1) == 1 && byte == 'x' ? 7 : 1);
  });
  ASSERT_TRUE(test::eventually([&] { return child.shared().maps == 2; }));
  std::this_thread::sleep_for(milliseconds(20));
  const auto removed = remove_parasite(child.pid());
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(*removed, 2U);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  const int status = child.exit_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  ::close(ends[0]);
  ::close(ends[1]);
}

// The process has two threads. One maps memory without end. The test sends a thousand signals a
// second.
TEST(ParasiteTest, ABusyProcessLosesNoSignalAndRunsOn) {
  static std::atomic<std::uint64_t>* signals = nullptr;
  const Child child([](Shared& shared) {
    signals = &shared.maps;
    struct sigaction action {};
    action.sa_handler = [](int) { ++*signals; };
    ::sigaction(SIGALRM, &action, nullptr);
    pthread_t thread{};
    ::pthread_create(&thread, nullptr, counts, &shared);
    const itimerval every{{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
    for (;;) {
      map_parasite();
      const timespec time{0, 2'000'000};
      ::nanosleep(&time, nullptr);
    }
  });
  std::size_t all = 0;
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(test::eventually([&] { return child.infected(); }));
    const auto removed = remove_parasite(child.pid());
    ASSERT_TRUE(removed.ok()) << removed.error().message;
    all += *removed;
  }
  EXPECT_GE(all, 50U);
  EXPECT_TRUE(child.counts_on());
  const std::uint64_t before = child.shared().maps;
  EXPECT_TRUE(test::eventually([&] { return child.shared().maps > before + 10; }));
}

TEST(ParasiteTest, AProcessThatIsStoppedStaysStopped) {
  const Child child([](Shared& shared) {
    map_parasite();
    shared.maps = 1;
    for (;;) ++shared.count;
  });
  ASSERT_TRUE(test::eventually([&] { return child.shared().maps == 1; }));
  ASSERT_TRUE(test::stop_child(child.pid()));
  EXPECT_EQ(remove_parasite(child.pid()).error().code, Code::failed_precondition);
  const std::uint64_t count = child.shared().count;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(child.shared().count, count);
  EXPECT_TRUE(child.infected());
  ::kill(child.pid(), SIGCONT);
  EXPECT_TRUE(child.counts_on());
}

TEST(ParasiteTest, AProcessThatIsGoneIsNotFound) {
  Child child([](Shared&) {});
  child.exit_status();
  EXPECT_EQ(remove_parasite(child.pid()).error().code, Code::not_found);
}

}  // namespace
}  // namespace kymo::criu
