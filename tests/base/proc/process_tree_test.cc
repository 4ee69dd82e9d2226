#include "base/proc/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

struct Fake {
  pid_t pid = 0;
  pid_t parent = 1;
  std::string children{};
  std::uint64_t ticks = 0;         // of user time; system time is twice that
  std::uint64_t waited_ticks = 0;  // user time of children that were waited for
  std::uint64_t read = 0;
  std::uint64_t switches = 0;
  char state = 'S';
};

// A /proc that the test writes. It changes files in place, like the kernel.
class ProcessTreeTest : public ::testing::Test {
 protected:
  void set(const Fake& f) {
    const std::string pid = std::to_string(f.pid);
    std::filesystem::create_directories(root_.path() + "/" + pid + "/task/" + pid);
    root_.file(pid + "/stat", pid + " (a) b (c) " + f.state + " " + std::to_string(f.parent) +
                                  " 1 1 0 -1 0 " + "10 " + "20 1 2 " + std::to_string(f.ticks) +
                                  " " + std::to_string(2 * f.ticks) + " " +
                                  std::to_string(f.waited_ticks) + " 0 20 0 3 0 55 1000 7 0\n");
    root_.file(pid + "/io", "rchar: " + std::to_string(f.read) +
                                "\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\n"
                                "write_bytes: 8192\ncancelled_write_bytes: 77\n");
    root_.file(pid + "/task/" + pid + "/children", f.children);
    root_.file(pid + "/task/" + pid + "/status", "Name:\tx\nvoluntary_ctxt_switches:\t" +
                                                     std::to_string(f.switches) +
                                                     "\nnonvoluntary_ctxt_switches:\t3\n");
  }
  // If a process has ended, the kernel lets a descriptor that is still open read nothing.
  void end(pid_t pid) {
    const std::string path = root_.path() + "/" + std::to_string(pid);
    const std::string task = path + "/task/" + std::to_string(pid);
    for (const std::string& file : {path + "/stat", path + "/io", task + "/status"}) {
      std::filesystem::resize_file(file, 0);
    }
    std::filesystem::remove_all(path);
  }
  TreeTotals read(ProcessTree& tree) {
    TreeTotals totals;
    now_ns_ += ProcessTree::kDiscoverNs;
    alive_ = tree.read(now_ns_, &totals);
    return totals;
  }

  test::TemporaryDirectory root_;
  std::uint64_t now_ns_ = 0;
  bool alive_ = false;
  const std::uint64_t tick_us_ = 1'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
};

TEST_F(ProcessTreeTest, SumsAProcessAndItsChildren) {
  set({.pid = 100, .children = "200 ", .ticks = 4, .read = 1000, .switches = 8});
  set({.pid = 200, .parent = 100, .ticks = 1, .read = 30, .switches = 2, .state = 't'});
  ProcessTree tree = ProcessTree::open(100, 0, root_.path()).value();
  const TreeTotals totals = read(tree);
  EXPECT_TRUE(alive_);
  EXPECT_EQ(totals.user_us, 5 * tick_us_);
  EXPECT_EQ(totals.system_us, 10 * tick_us_);
  EXPECT_EQ(totals.cpu_ns, 15 * tick_us_ * 1000);
  EXPECT_EQ(totals.read_bytes, 1030U);
  EXPECT_EQ(totals.written_bytes, 10U);
  EXPECT_EQ(totals.disk_read_bytes, 8192U);
  EXPECT_EQ(totals.disk_written_bytes, 16384U);
  EXPECT_EQ(totals.minor_faults, 60U);
  EXPECT_EQ(totals.major_faults, 6U);
  EXPECT_EQ(totals.voluntary_switches, 10U);
  EXPECT_EQ(totals.involuntary_switches, 6U);
  EXPECT_EQ(totals.resident_bytes, 14U * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(totals.processes, 2U);
  EXPECT_EQ(totals.threads, 6U);
  EXPECT_EQ(totals.stopped, 1U);
}

TEST_F(ProcessTreeTest, AChildThatEndsTakesNothingAway) {
  set({.pid = 100, .children = "200", .ticks = 1, .read = 1000, .switches = 8});
  set({.pid = 200, .parent = 100, .ticks = 10, .read = 500, .switches = 20});
  ProcessTree tree = ProcessTree::open(100, 0, root_.path()).value();
  const TreeTotals before = read(tree);
  end(200);
  set({.pid = 100, .ticks = 1, .read = 1000, .switches = 8});
  const TreeTotals between = read(tree);  // the child has ended, and was not waited for yet
  EXPECT_EQ(between.user_us, before.user_us);
  EXPECT_EQ(between.read_bytes, before.read_bytes);
  EXPECT_EQ(between.voluntary_switches, before.voluntary_switches);
  EXPECT_EQ(between.processes, 1U);
  set({.pid = 100, .ticks = 2, .waited_ticks = 12, .read = 1600, .switches = 9});
  const TreeTotals after = read(tree);
  EXPECT_EQ(after.user_us, 14 * tick_us_);
  EXPECT_EQ(after.read_bytes, 1600U);
  EXPECT_EQ(after.voluntary_switches, 29U);
}

TEST_F(ProcessTreeTest, AChildOutlivesItsParent) {
  set({.pid = 100, .children = "200"});
  set({.pid = 200, .parent = 100, .children = "300"});
  set({.pid = 300, .parent = 200, .ticks = 1});
  ProcessTree tree = ProcessTree::open(100, 0, root_.path()).value();
  EXPECT_EQ(read(tree).processes, 3U);
  end(200);
  set({.pid = 100});
  EXPECT_EQ(read(tree).processes, 2U);
  end(100);
  EXPECT_EQ(read(tree).processes, 1U);
  EXPECT_TRUE(alive_);
  end(300);
  static_cast<void>(read(tree));
  EXPECT_FALSE(alive_);
}

TEST_F(ProcessTreeTest, ADamagedFileIsNoNumber) {
  set({.pid = 100});
  ProcessTree tree = ProcessTree::open(100, 0, root_.path()).value();
  root_.file("100/stat", "100 (x) S 1 2");
  static_cast<void>(read(tree));
  EXPECT_FALSE(alive_);
  EXPECT_FALSE(ProcessTree::open(4242, 0, root_.path()).ok());
}

TEST(ProcessTreeOfTheKernelTest, SeesAChildWorkWriteAndStop) {
  int pipe_ends[2];
  int release[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  ASSERT_EQ(::pipe(release), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::fork() == 0) {  // the grandchild uses CPU time, and lives until it was seen
      timespec used{};
      do {
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
      } while (to_nanos(used) < 70'000'000);
      char byte = 0;
      const bool written = ::write(pipe_ends[1], "0123456789", 10) == 10;
      ::_exit(written && ::read(release[0], &byte, 1) == 1 ? 0 : 1);
    }
    ::wait(nullptr);
    ::pause();
    ::_exit(0);
  }
  ProcessTree tree = ProcessTree::open(pid).value();
  TreeTotals totals;
  std::uint64_t last_cpu = 0;
  const auto read = [&] {
    EXPECT_TRUE(tree.read(monotonic_ns(), &totals));
    EXPECT_GE(totals.cpu_ns, last_cpu);
    last_cpu = totals.cpu_ns;
  };
  ASSERT_TRUE(test::eventually([&] {
    read();
    return totals.written_bytes >= 10 && totals.processes == 2;
  }));
  ASSERT_EQ(::write(release[1], "x", 1), 1);
  ASSERT_TRUE(test::eventually([&] {
    read();
    return totals.written_bytes >= 10 && totals.processes == 1;
  }));
  EXPECT_GE(totals.cpu_ns, 60'000'000U) << "70 ms less one clock tick of 10 ms";
  EXPECT_GT(totals.minor_faults, 0U);
  EXPECT_GT(totals.resident_bytes, 0U);
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(
      test::eventually([&] { return tree.read(monotonic_ns(), &totals) && totals.stopped == 1; }));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(tree.read(monotonic_ns(), &totals));
  for (const int end : {pipe_ends[0], pipe_ends[1], release[0], release[1]}) {
    ::close(end);
  }
}

}  // namespace
}  // namespace kymo::probe
