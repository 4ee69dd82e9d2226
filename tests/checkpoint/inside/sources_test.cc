#include "checkpoint/inside/sources.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/proc/process.h"
#include "base/spawn.h"
#include "checkpoint/inside/task_group.h"
#include "support/temporary_directory.h"

namespace kymo::inside {
namespace {

using Values = std::map<std::string, std::uint64_t>;

// Reads a source as many times as it needs to read all its files again.
Values read(Source& source) {
  std::vector<std::uint64_t> values(source.columns().size());
  for (int i = 0; i < 10; ++i) source.read(monotonic_ns(), values);
  Values named;
  for (std::size_t i = 0; i < values.size(); ++i) named[source.columns()[i].name] = values[i];
  return named;
}

// Runs a program, because ThreadSanitizer starts a thread in a child that only forks.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    const Result<pid_t> started = spawn({.file = words.front(), .words = words});
    EXPECT_TRUE(started.ok()) << started.error().message;
    pid_ = started.ok() ? *started : -1;
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(MachineSource, ReadsTheKernelsTexts) {
  const test::TemporaryDirectory proc;
  write(proc.path() + "/stat",
        "cpu  100 20 300 4000 50 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n");
  write(proc.path() + "/meminfo",
        "MemTotal:       8000 kB\nMemFree:        10 kB\nMemAvailable:   4000 kB\n"
        "Dirty:            12 kB\nWriteback:         3 kB\nWritebackTmp:      9 kB\n");
  write(proc.path() + "/pressure/memory",
        "some avg10=0.10 avg60=0.02 avg300=0.00 total=1234\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
  const Values values = read(*make_machine_source(proc.path()));
  const auto tick_ns =
      std::uint64_t{1'000'000'000} / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  EXPECT_EQ(values.at("machine_cpu_ns"), (100 + 20 + 300 + 6 + 7) * tick_ns);
  EXPECT_EQ(values.at("machine_steal_ns"), 80 * tick_ns);
  EXPECT_EQ(values.at("machine_idle_ns"), (4000 + 50) * tick_ns);
  EXPECT_EQ(values.at("machine_dirty_bytes"), 12U * 1024);
  EXPECT_EQ(values.at("machine_writeback_bytes"), 3U * 1024);
  EXPECT_EQ(values.at("machine_free_bytes"), 4000U * 1024);
  EXPECT_EQ(values.at("machine_memory_wait_ns"), 1'234'000U);
}

TEST(MachineSource, AnUnreadableTextLeavesTheValuesAlone) {
  const test::TemporaryDirectory proc;
  write(proc.path() + "/stat", "nonsense");
  write(proc.path() + "/meminfo", "");
  for (const auto& [name, value] : read(*make_machine_source(proc.path())))
    EXPECT_EQ(value, 0U) << name;
}

TEST(MachineSource, AKernelThatDoesNotCountPressureHasNoColumnForIt) {
  const test::TemporaryDirectory proc;
  write(proc.path() + "/stat", "cpu 1 1 1 1 1 1 1 1\n");
  const auto source = make_machine_source(proc.path());
  EXPECT_EQ(read(*source).count("machine_memory_wait_ns"), 0U);
}

TEST(DiskSource, AFileSystemWithoutADiskHasNoColumnsAndSaysSo) {
  const auto source = make_disk_source("/proc");
  EXPECT_TRUE(source->columns().empty());
  EXPECT_EQ(source->missing(), "the disk of /proc: its file system has no block device");
}

TEST(DiskSource, SeesWhatIsWrittenToTheDisk) {
  const test::TemporaryDirectory folder;
  const auto source = make_disk_source(folder.path());
  if (source->columns().empty()) GTEST_SKIP() << source->missing();
  const Values before = read(*source);
  constexpr std::size_t kBytes = 8U << 20U;
  {
    FILE* file = std::fopen((folder.path() + "/f").c_str(), "w");
    const std::string data(kBytes, 'x');
    ASSERT_EQ(std::fwrite(data.data(), 1, data.size(), file), data.size());
    std::fflush(file);
    ASSERT_EQ(::fsync(fileno(file)), 0);
    std::fclose(file);
  }
  EXPECT_GE(read(*source).at("disk_written_bytes") - before.at("disk_written_bytes"), kBytes);
}

TEST(TargetSource, SaysWhetherItRunsOrIsStoppedOrTracedOrGone) {
  Child child({"sleep", "infinity"});
  const auto source = make_target_source(child.pid());
  EXPECT_EQ(read(*source).at("target_running"), 1U);
  ::kill(child.pid(), SIGSTOP);
  ::waitpid(child.pid(), nullptr, WUNTRACED);
  Values values = read(*source);
  EXPECT_EQ(values.at("target_stopped"), 1U);
  EXPECT_EQ(values.at("target_running"), 0U);
  ::kill(child.pid(), SIGCONT);
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, child.pid(), nullptr, nullptr), 0);
  ::waitpid(child.pid(), nullptr, 0);
  EXPECT_EQ(read(*source).at("target_traced"), 1U);
  child.end();
  values = read(*source);
  EXPECT_EQ(values.at("target_gone"), 1U);
  EXPECT_EQ(values.at("target_traced"), 0U);
}

TEST(TargetSource, CountsTheCpuTimeFromTheFirstLookOn) {
  Child child({"sh", "-c", "while :; do :; done"});
  const auto cpu_ns = [&] {
    clockid_t clock{};
    timespec time{};
    ::clock_getcpuclockid(child.pid(), &clock);
    ::clock_gettime(clock, &time);
    return to_nanos(time);
  };
  // The CPU time before the first reading must not count.
  ASSERT_TRUE(test::eventually([&] { return cpu_ns() > 100'000'000; }));
  // The child runs during each reading, which takes an unknown time. So the test takes the child's CPU time
  // before and after each reading.
  const auto source = make_target_source(child.pid());
  const std::uint64_t before_first = cpu_ns();
  read(*source);
  const std::uint64_t after_first = cpu_ns();
  // The kernel updates the schedstat of a running task at each of its ticks, at least every 10 ms.
  constexpr std::uint64_t kTick = 10'000'000;
  ASSERT_TRUE(test::eventually([&] { return cpu_ns() > after_first + 10 * kTick; }));
  const std::uint64_t before_last = cpu_ns();
  const std::uint64_t counted = read(*source).at("target_cpu_ns");
  const std::uint64_t after_last = cpu_ns();
  EXPECT_GE(counted + 2 * kTick, before_last - after_first);
  EXPECT_LE(counted, after_last - before_first + 2 * kTick);
}

TEST(TargetSource, AProcessThatBeginsLaterCountsFromItsBirth) {
  // The pid is known before the process exists, as in a restore, where the watched process is forked later.
  const test::TemporaryDirectory proc;
  const auto source = make_target_source(7, nullptr, proc.path());
  EXPECT_EQ(read(*source).at("target_running"), 0U);
  const std::string task = proc.path() + "/7/task/7/";
  write(task + "stat",
        "7 (a b) c) R 1 1 1 0 -1 0 30 0 4 0 1 1 0 0 20 0 1 0 5 1000 25 0 0 0 0 0 0 0 0 0\n");
  write(task + "schedstat", "5000 700 3\n");
  // New tasks are looked for every 10 ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  const Values values = read(*source);
  EXPECT_EQ(values.at("target_running"), 1U);
  EXPECT_EQ(values.at("target_cpu_ns"), 5000U);
  EXPECT_EQ(values.at("target_cpu_wait_ns"), 700U);
  EXPECT_EQ(values.at("target_timeslices"), 3U);
  EXPECT_EQ(values.at("target_minor_faults"), 30U);
  EXPECT_EQ(values.at("target_major_faults"), 4U);
  EXPECT_EQ(values.at("target_resident_bytes"),
            25U * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

// Writes a /proc with one process by hand.
void write_task(const std::string& proc, char state, const std::string& wchan) {
  const std::string task = proc + "/7/task/7/";
  write(task + "stat", std::string("7 (x) ") + state +
                           " 1 1 1 0 -1 0 30 0 4 0 1 1 0 0 20 0 1 0 5 1000 25 0 0 0 0 0 0 0 0 0\n");
  write(task + "schedstat", "5000 700 3\n");
  write(task + "wchan", wchan);
}

TEST(TargetSource, SaysWhichThreadSleptWithoutInterruptionAndWhere) {
  const test::TemporaryDirectory proc;
  write_task(proc.path(), 'S', "do_select");
  const auto source = make_target_source(7, nullptr, proc.path());
  std::vector<std::uint64_t> values(source->columns().size());
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&](int ms) {
    for (int i = 0; i < ms; ++i) source->read(now_ns += 1'000'000, values);
  };
  pass(10);
  EXPECT_EQ(source->sleeper().task, 0);
  write_task(proc.path(), 'D', "folio_wait_bit_common");
  pass(100);
  EXPECT_EQ(source->sleeper().task, 7);
  EXPECT_EQ(source->sleeper().where, "folio_wait_bit_common");
  EXPECT_NEAR(static_cast<double>(source->sleeper().slept_ns), 98e6, 2e6);
}

// With cgroups version 1 a frozen thread is in the state D. It had been said to wait for a slow disk.
TEST(TargetSource, AFrozenThreadWaitsForNothing) {
  const test::TemporaryDirectory proc;
  write_task(proc.path(), 'S', "do_select");
  const auto source = make_target_source(7, nullptr, proc.path());
  const auto& columns = source->columns();
  std::vector<std::uint64_t> values(columns.size());
  const auto waited = std::find_if(columns.begin(), columns.end(), [](const Metric& metric) {
    return metric.name == "target_disk_wait_ns";
  });
  ASSERT_NE(waited, columns.end());
  const std::uint64_t& waited_ns = values[static_cast<std::size_t>(waited - columns.begin())];
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&](int ms) {
    for (int i = 0; i < ms; ++i) source->read(now_ns += 1'000'000, values);
  };
  pass(10);
  // From Linux 6.1 on it stays in the function in which it slept.
  for (const char* freezer :
       {"__refrigerator", "__refrigerator.part.0", "do_freezer_trap", "hrtimer_nanosleep",
        "futex_wait_queue", "poll_schedule_timeout.constprop.0", "ep_poll", "ptrace_stop"}) {
    write_task(proc.path(), 'D', freezer);
    pass(100);
    EXPECT_EQ(source->sleeper().task, 0) << freezer;
    EXPECT_EQ(waited_ns, 0U) << freezer;
  }
  write_task(proc.path(), 'D', "folio_wait_bit_common");
  pass(100);
  EXPECT_EQ(source->sleeper().where, "folio_wait_bit_common");
  EXPECT_GT(waited_ns, 0U);
}

TEST(TargetSource, AReadingAfterALongTimeIsAWholeOne) {
  const test::TemporaryDirectory proc;
  write_task(proc.path(), 'S', "");
  const auto source = make_target_source(7, nullptr, proc.path());
  std::vector<std::uint64_t> values(source->columns().size());
  source->read(1'000'000'000, values);
  write_task(proc.path(), 't', "");
  source->read(1'001'000'000, values);
  EXPECT_EQ(values[0], 1U) << "target_running: the state is read only every second time";
  source->read(1'002'000'000, values);
  EXPECT_EQ(values[0], 0U);
  write_task(proc.path(), 'S', "");
  source->read(1'050'000'000, values);
  EXPECT_EQ(values[0], 1U) << "after a long pause of the reader, all files must be read";
}

TEST(CriuSource, TellsWaitingForDirtyPagesFromWaitingForADisk) {
  const test::TemporaryDirectory proc;
  const auto stat = [&](char state) {
    write(proc.path() + "/9/stat",
          std::string("9 (criu) ") + state + " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
  };
  const auto subjects = std::make_shared<Subjects>();
  subjects->spawned(9);
  write(proc.path() + "/9/schedstat", "1 1 1\n");
  write(proc.path() + "/9/wchan", "balance_dirty_pages");
  stat('D');
  const auto source = make_criu_source({}, subjects, proc.path());
  std::vector<std::uint64_t> values(source->columns().size());
  std::uint64_t now_ns = 1'000'000'000;
  const auto value = [&](const std::string& name) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (source->columns()[i].name == name) return static_cast<double>(values[i]);
    }
    return -1.0;
  };
  for (int i = 0; i < 100; ++i) source->read(now_ns += 1'000'000, values);
  write(proc.path() + "/9/wchan", "blk_mq_get_tag");
  for (int i = 0; i < 100; ++i) source->read(now_ns += 1'000'000, values);
  EXPECT_NEAR(value("criu_throttled_ns"), 98e6, 3e6);
  EXPECT_NEAR(value("criu_disk_wait_ns"), 198e6, 3e6);
  EXPECT_EQ(value("criu_stopped_ns"), 0);
  stat('T');
  for (int i = 0; i < 100; ++i) source->read(now_ns += 1'000'000, values);
  EXPECT_NEAR(value("criu_stopped_ns"), 98e6, 3e6);
}

TEST(CriuSource, AZombieStillHasItsLastFigures) {
  const test::TemporaryDirectory proc;
  write(proc.path() + "/9/schedstat", "1000 1 1\n");
  write(proc.path() + "/9/io", "syscr: 1\nsyscw: 2\nread_bytes: 3\nwrite_bytes: 4\n");
  write(proc.path() + "/9/stat", "9 (criu) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
  const auto subjects = std::make_shared<Subjects>();
  subjects->spawned(9);
  const auto source = make_criu_source({}, subjects, proc.path());
  EXPECT_EQ(read(*source).at("criu_written_bytes"), 4U);
  write(proc.path() + "/9/schedstat", "9000 1 1\n");
  write(proc.path() + "/9/io", "syscr: 1\nsyscw: 2\nread_bytes: 3\nwrite_bytes: 4000\n");
  write(proc.path() + "/9/stat", "9 (criu) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0\n");
  const Values values = read(*source);
  EXPECT_EQ(values.at("criu_written_bytes"), 4000U);
  EXPECT_EQ(values.at("criu_cpu_ns"), 9000U);
  EXPECT_EQ(values.at("criu_tasks"), 0U);
}

TEST(CriuSource, AZombieThatItsParentDoesNotWaitForCountsOnce) {
  const test::TemporaryDirectory proc;
  const auto process = [&](const std::string& pid, char state, const std::string& children) {
    write(proc.path() + "/" + pid + "/stat",
          pid + " (criu) " + state + " 1 1 1 0 -1 0 5 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
    write(proc.path() + "/" + pid + "/schedstat", "1000 1 1\n");
    write(proc.path() + "/" + pid + "/task/" + pid + "/children", children);
  };
  process("9", 'S', "10 ");
  process("10", 'Z', "");
  TaskGroup group(TaskGroup::Depth::processes, proc.path());
  group.add(9);
  std::uint64_t now_ns = 1'000'000'000;
  TaskTotals totals;
  for (int i = 0; i < 500; ++i) totals = group.read(now_ns += 1'000'000);
  EXPECT_EQ(totals.cpu_ns, 2000U);
  EXPECT_EQ(totals.minor_faults, 10U);
  EXPECT_EQ(totals.gone, 1U);
  process("9", 'S', "");  // it has waited, and a new child has the same pid
  for (int i = 0; i < 100; ++i) totals = group.read(now_ns += 1'000'000);
  process("9", 'S', "10 ");
  process("10", 'S', "");
  for (int i = 0; i < 100; ++i) totals = group.read(now_ns += 1'000'000);
  EXPECT_EQ(totals.cpu_ns, 3000U);
  EXPECT_EQ(totals.running, 2U);
}

// As if another thread of the process had called execve(2).
TEST(TargetSource, AFigureOfTheKernelThatGoesBackDoesNotLowerTheSum) {
  const test::TemporaryDirectory proc;
  write_task(proc.path(), 'S', "");
  TaskGroup group(TaskGroup::Depth::threads, proc.path());
  group.add(7);
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&] {
    TaskTotals totals;
    for (int i = 0; i < 10; ++i) totals = group.read(now_ns += 1'000'000);
    return totals;
  };
  EXPECT_EQ(pass().cpu_ns, 0U) << "what it did before the first look does not count";
  write(proc.path() + "/7/task/7/schedstat", "6000 900 5\n");
  EXPECT_EQ(pass().cpu_ns, 1000U);
  write(proc.path() + "/7/task/7/schedstat", "10 20 1\n");
  write(proc.path() + "/7/task/7/stat",
        "7 (x) S 1 1 1 0 -1 0 3 0 1 0 1 1 0 0 20 0 1 0 5 1000 25 0 0 0 0 0 0 0 0 0\n");
  const TaskTotals totals = pass();
  EXPECT_EQ(totals.cpu_ns, 1000U);
  EXPECT_EQ(totals.wait_ns, 200U);
  EXPECT_EQ(totals.timeslices, 2U);
  EXPECT_EQ(totals.minor_faults, 0U);
  EXPECT_EQ(totals.major_faults, 0U);
}

TEST(CriuSource, FindsACriuThatAnotherProgramHasStartedAsTheTracer) {
  Child child({"sleep", "infinity"});
  Observed target;
  target.pid = child.pid();
  target.container = true;
  const auto source = make_criu_source(target, std::make_shared<Subjects>());
  EXPECT_EQ(read(*source).at("criu_tasks"), 0U);
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0);
  // New tasks are looked for every 10 ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  EXPECT_GE(read(*source).at("criu_tasks"), 1U) << "this program";
}

TEST(CriuSource, TheContainerThatIsRestoredIsTheTargetAndNoPartOfCriu) {
  const test::TemporaryDirectory proc;
  const auto process = [&](int pid, const std::string& children, const std::string& space) {
    const std::string folder = proc.path() + "/" + std::to_string(pid);
    const std::string stat =
        std::to_string(pid) + " (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n";
    for (const std::string& at : {folder, folder + "/task/" + std::to_string(pid)}) {
      write(at + "/stat", stat);
      write(at + "/schedstat", "1 1 1\n");
      write(at + "/children", children);
    }
    std::filesystem::create_directories(folder + "/ns");
    std::filesystem::create_symlink(space, folder + "/ns/pid");
  };
  std::filesystem::create_directories(proc.path() + "/self/ns");
  std::filesystem::create_symlink("pid:[1]", proc.path() + "/self/ns/pid");
  process(9, "10 11", "pid:[1]");
  process(10, "", "pid:[1]");
  process(11, "12", "pid:[2]");
  process(12, "", "pid:[2]");
  Observed target;
  target.container = true;
  target.restored_container = "web";
  const auto subjects = std::make_shared<Subjects>();
  subjects->spawned(9);
  const auto source = make_criu_source(target, subjects, proc.path());
  const auto restored = make_target_source(0, subjects, proc.path());
  EXPECT_NE(restored->missing().find("were not found"), std::string::npos);
  read(*source);
  EXPECT_EQ(read(*source).at("criu_tasks"), 2U) << "the tasks 9 and 10";
  EXPECT_EQ(subjects->target(), 11);
  EXPECT_EQ(read(*restored).at("target_running"), 2U) << "the tasks 11 and 12";
  EXPECT_EQ(restored->missing(), "");
}

// The longer nothing changes, the less often it looks; then it looks often again.
TEST(TargetSource, FindsANewThreadWithin40Milliseconds) {
  const test::TemporaryDirectory proc;
  write_task(proc.path(), 'S', "");
  const auto source = make_target_source(7, nullptr, proc.path());
  std::vector<std::uint64_t> values(source->columns().size());
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&](int ms) {
    for (int i = 0; i < ms; ++i) source->read(now_ns += 1'000'000, values);
  };
  const auto begin_thread = [&](int id) {
    const std::string folder = proc.path() + "/7/task/" + std::to_string(id);
    write(folder + "/stat",
          std::to_string(id) + " (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
    write(folder + "/schedstat", "1 1 1\n");
  };
  pass(1000);
  EXPECT_EQ(values[0], 1U);
  begin_thread(8);
  int passed = 0;
  for (; values[0] < 2 && passed < 100; ++passed) pass(1);
  EXPECT_LE(passed, 41);
  begin_thread(9);
  pass(11);
  EXPECT_EQ(values[0], 3U);
}

TEST(TargetSource, ThousandsOfTasksAreBoundedAndSaid) {
  const test::TemporaryDirectory proc;
  for (int task = 1; task <= 1000; ++task) {
    const std::string folder = proc.path() + "/1/task/" + std::to_string(task);
    write(folder + "/stat",
          std::to_string(task) + " (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
    write(folder + "/schedstat", "1 1 1\n");
  }
  const auto source = make_target_source(1, nullptr, proc.path());
  std::vector<std::uint64_t> values(source->columns().size());
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&](int readings) {
    for (int i = 0; i < readings; ++i) source->read(now_ns += 1'000'000, values);
  };
  pass(1);
  EXPECT_LE(values.front(), TaskGroup::kReadsATime);
  pass(299);
  EXPECT_EQ(values.front(), TaskGroup::kMaxTasks) << "each task must have been read once";
  EXPECT_EQ(source->missing(),
            "the tasks of the target: only 256 are looked at, 744 more are not; new ones are found "
            "within 250 ms");
}

// What a process of many threads did while it was restored counted twice, and was searched for new threads twice.
TEST(CriuSource, TheProcessThatIsRestoredIsNoPartOfCriu) {
  const test::TemporaryDirectory proc;
  const auto process = [&](int pid, const std::string& children) {
    const std::string folder = proc.path() + "/" + std::to_string(pid);
    write(folder + "/stat",
          std::to_string(pid) + " (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
    write(folder + "/schedstat", "1 1 1\n");
    write(folder + "/task/" + std::to_string(pid) + "/children", children);
  };
  process(9, "10 11 ");
  process(10, "");
  process(11, "12 ");
  process(12, "");
  Observed target;
  target.pid = 11;
  const auto tasks = [&] {
    const auto subjects = std::make_shared<Subjects>();
    subjects->spawned(9);
    return read(*make_criu_source(target, subjects, proc.path())).at("criu_tasks");
  };
  EXPECT_EQ(tasks(), 4U) << "a dump";
  target.restores = true;
  EXPECT_EQ(tasks(), 2U);
}

TEST(CriuSource, FollowsTheProgramsThatTheThreadStarts) {
  const auto subjects = std::make_shared<Subjects>();
  const auto source = make_criu_source({}, subjects);
  EXPECT_EQ(read(*source).at("criu_tasks"), 0U);
  spawn_listener = subjects.get();
  const Result<pid_t> shell = spawn({.file = "sh", .words = {"sh", "-c", "sleep 30 & wait"}});
  spawn_listener = nullptr;
  ASSERT_TRUE(shell.ok());
  EXPECT_TRUE(test::eventually([&] { return read(*source).at("criu_tasks") == 2; }))
      << "the shell and its child";
  const std::vector<pid_t> children = probe::children_of(*shell).value();
  ::kill(*shell, SIGKILL);
  ::waitpid(*shell, nullptr, 0);
  const Result<pid_t> unseen = spawn({.file = "true", .words = {"true"}});
  ::waitpid(*unseen, nullptr, 0);
  EXPECT_LE(read(*source).at("criu_tasks"), 1U);
  for (const pid_t child : children) ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace kymo::inside
