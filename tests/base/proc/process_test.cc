#include "base/proc/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/proc/thread_list.h"
#include "support/no_descriptors.h"
#include "support/stop_child.h"
#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

// The stat line of process 42 with this name, state and flags.
std::string stat_line(const std::string& name, char state, const std::string& flags) {
  return "42 (" + name + ") " + state + " 1 42 40 0 -1 " + flags +
         " 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000000 25 18446744073709551615 1 1 0 0 0 0 0 0\n";
}

TEST(ProcessTest, ReadsItself) {
  const Result<Process> self = read_process(getpid());
  ASSERT_TRUE(self.ok()) << self.error().message;
  EXPECT_EQ(self->parent, getppid());
  EXPECT_EQ(self->session, getsid(0));
  EXPECT_EQ(self->uid, geteuid());
  EXPECT_EQ(self->state, 'R');
  EXPECT_EQ(self->tracer, 0);
  EXPECT_FALSE(self->kernel_thread);
  EXPECT_GT(self->start_ticks, 0U);
  EXPECT_GT(self->resident_bytes, 100'000U);
  ASSERT_FALSE(self->command.empty());
  EXPECT_NE(self->command[0].find("probe_test"), std::string::npos);
  EXPECT_TRUE(process_lives(getpid(), self->start_ticks));
  EXPECT_FALSE(process_lives(getpid(), self->start_ticks + 1));
}

TEST(ProcessTest, WithoutADescriptorItIsNotKnownWhetherAProcessRuns) {
  const std::uint64_t start_ticks = read_process(getpid())->start_ticks;
  const test::NoDescriptors none;
  EXPECT_EQ(read_process(getpid()).error().errno_value, EMFILE);
  EXPECT_EQ(life_of(getpid(), start_ticks), Life::unknown);
  EXPECT_TRUE(process_lives(getpid(), start_ticks));
  EXPECT_EQ(process_tree(getpid()), std::vector<pid_t>{getpid()});
  EXPECT_EQ(children_of(getpid()).error().errno_value, EMFILE);
  EXPECT_EQ(whole_process_tree(getpid()).error().errno_value, EMFILE);
  EXPECT_EQ(stopped_threads(getpid()), std::vector<pid_t>{getpid()});
}

TEST(ThreadListTest, GivesEachThreadOnce) {
  const test::TemporaryDirectory root;
  root.folder("42");
  root.folder("42/task");
  root.file("42/task/1x", "");
  std::vector<pid_t> expected;
  for (pid_t thread = 1; thread <= 500; ++thread) {
    root.folder("42/task/" + std::to_string(thread));
    expected.push_back(thread);
  }
  ThreadList list(42, root.path());
  std::vector<pid_t> found;
  while (const pid_t thread = list.next()) found.push_back(thread);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(list.error(), 0);
  ThreadList gone(43, root.path());
  EXPECT_EQ(gone.next(), 0);
  EXPECT_EQ(gone.error(), 0);
  const test::NoDescriptors none;
  EXPECT_EQ(ThreadList(42, root.path()).error(), EMFILE);
}

TEST(ProcessTest, ANameMayHoldSpacesAndParentheses) {
  const test::TemporaryDirectory root;
  root.folder("42");
  root.file("42/stat", stat_line("a) R 7 (b", 'S', "4194560"));
  root.file("42/cmdline", std::string_view("prog\0two words\0\0", 16));
  root.file("42/status", "Name:\tx\nTracerPid:\t9\nUid:\t1\t2\t3\t4\n");
  const Result<Process> process = read_process(42, root.path());
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_EQ(process->name, "a) R 7 (b");
  EXPECT_EQ(process->state, 'S');
  EXPECT_EQ(process->session, 40);
  EXPECT_EQ(process->start_ticks, 987'654U);
  EXPECT_EQ(process->resident_bytes, 25U * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(process->command, (std::vector<std::string>{"prog", "two words", ""}));
  EXPECT_EQ(process->tracer, 9);
  EXPECT_EQ(process->uid, 2U);
}

TEST(ProcessTest, KnowsAKernelThread) {
  const test::TemporaryDirectory root;
  root.folder("42");
  root.file("42/stat", stat_line("kworker/0:1", 'I', "69238880"));
  const Result<Process> process = read_process(42, root.path());
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(process->kernel_thread);
  EXPECT_TRUE(process->command.empty());
}

TEST(ProcessTest, AKilledProcessDoesNotLiveThoughItIsNotYetGone) {
  const test::TemporaryDirectory root;
  root.folder("42");
  root.file("42/stat", stat_line("prog", 'S', "4194560"));
  root.file("42/status", "SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n");
  EXPECT_TRUE(process_lives(42, 0, root.path())) << "a process may handle SIGTERM and live on";
  root.file("42/status", "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n");
  EXPECT_FALSE(process_lives(42, 0, root.path()));
  root.file("42/status", "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n");
  root.file("42/stat", stat_line("prog", 'R', "4194564"));
  EXPECT_FALSE(process_lives(42, 0, root.path())) << "the process is ending";
  EXPECT_FALSE(read_process(42, root.path())->zombie());
}

TEST(ProcessTest, RefusesTextThatIsNoStat) {
  const test::TemporaryDirectory root;
  root.folder("42");
  for (const char* text : {"42", "42 (x) S 1", "42 )x( S 1 2 3", "garbage\n"}) {
    root.file("42/stat", text);
    EXPECT_EQ(read_process(42, root.path()).error().code, Code::data_loss) << text;
  }
  EXPECT_EQ(read_process(43, root.path()).error().code, Code::not_found);
}

TEST(ProcessTest, SeesChildrenStopsAndTheEnd) {
  // Starts another program, because a forked copy of a program with a sanitizer also has the sanitizer's
  // threads.
  std::array<char, 6> program{"sleep"};
  std::array<char, 4> seconds{"600"};
  const std::array<char*, 3> command{program.data(), seconds.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawnp(&child, "sleep", nullptr, nullptr, command.data(), environ), 0);
  EXPECT_EQ(process_tree(getpid()), (std::vector<pid_t>{getpid(), child}));
  EXPECT_TRUE(stopped_threads(getpid()).empty());
  ASSERT_TRUE(test::stop_child(child));
  EXPECT_EQ(stopped_threads(getpid()), (std::vector<pid_t>{child}));
  const int fd = open_process(child);
  ASSERT_GE(fd, 0);
  kill(child, SIGKILL);
  pollfd ended{fd, POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 10'000), 1);
  close(fd);
  EXPECT_TRUE(read_process(child)->zombie());
  EXPECT_FALSE(process_lives(child, 0));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(process_tree(child).empty());
}

// kymo kill said "its process is gone", kymo delete "it runs: end it first": the kernel shows such a process as a zombie.
TEST(ProcessTest, OneWhoseFirstThreadHasEndedRunsUntilTheLastOneEnds) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);  // only this thread
  }
  const auto state_is = [child](char wanted) {
    const auto seen = read_process(child);
    return seen && seen->state == wanted;
  };
  ASSERT_TRUE(test::eventually([&] { return state_is('Z'); }));
  EXPECT_TRUE(read_process(child)->first_thread_ended);
  EXPECT_FALSE(read_process(child)->zombie());
  EXPECT_FALSE(read_process(child)->ending);
  EXPECT_EQ(life_of(child, 0), Life::runs);
  kill(child, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return !process_lives(child, 0); }));
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace kymo::probe
