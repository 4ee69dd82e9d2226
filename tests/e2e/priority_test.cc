// kymod's collector has a real-time priority, and no other thread or process has it.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <filesystem>
#include <sstream>

#include "programs.h"

namespace kymo::test {
namespace {

struct Scheduling {
  int policy = -1;
  int priority = -1;
  int nice = -100;
};

// The scheduling of the thread with this stat file. The field numbers are those of proc(5).
Scheduling scheduling_of(const std::string& stat_path) {
  const std::string stat = read_file(stat_path);
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  Scheduling found;
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 19) found.nice = std::stoi(field);
    if (number == 40) found.priority = std::stoi(field);
    if (number == 41) found.policy = std::stoi(field);
  }
  return found;
}

Scheduling collector_of(const Kymod& kymod) {
  const std::string tasks = "/proc/" + std::to_string(kymod.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    if (read_file(task.path().string() + "/comm") == "kymo-collector\n") {
      return scheduling_of(task.path().string() + "/stat");
    }
  }
  ADD_FAILURE() << "kymod has no collector";
  return {};
}

TEST(PriorityTest, TheCollectorRunsAheadAndNoJobInheritsThat) {
  Kymod kymod;
  kymod.start();
  if (kymod.log().find("runs without real-time priority") != std::string::npos) {
    GTEST_SKIP() << "no real-time priority here";
  }
  const Scheduling collector = collector_of(kymod);
  EXPECT_EQ(collector.policy, SCHED_FIFO);
  EXPECT_EQ(collector.priority, 1);
  const nlohmann::json job =
      kymod.kymo_json({"run", "process", "--name", "work", "--", "sleep", "60"});
  const std::string pid = std::to_string(job["pid"].get<int>());
  const Scheduling child = scheduling_of("/proc/" + pid + "/stat");
  EXPECT_EQ(child.policy, SCHED_OTHER);
  EXPECT_EQ(child.nice, ::getpriority(PRIO_PROCESS, 0))
      << "a job must have the nice value of the user who started kymod";
}

TEST(PriorityTest, WithoutRealtimeItHasANiceValue) {
  Kymod kymod({"--no-realtime"});
  kymod.start();
  if (kymod.log().find("runs without nice") != std::string::npos) {
    GTEST_SKIP() << "no real-time priority here, and no nice value below 0";
  }
  const Scheduling collector = collector_of(kymod);
  EXPECT_EQ(collector.policy, SCHED_OTHER);
  EXPECT_EQ(collector.nice, -10);
}

// A collector that spins with this priority would take a CPU from all other programs.
TEST(PriorityTest, ACollectorThatSpinsHasNoRealtimePriority) {
  Kymod kymod({"--profiling-pace", "precise"});
  kymod.start();
  EXPECT_EQ(collector_of(kymod).policy, SCHED_OTHER);
}

}  // namespace
}  // namespace kymo::test
