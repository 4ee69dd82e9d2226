// What kymo ps says of a job that stands still.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

TEST(StandingTest, WhateverMakesAJobStandStillIsNamed) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const pid_t pid = kymod.churn(1, "work")["pid"].get<pid_t>();
  const auto held = [&] { return kymod.job("work")["held"].get<std::string>(); };
  const auto shown = [&](const std::string& state, const std::string& note) {
    const std::string table = kymod.kymo({"ps"}).out;
    EXPECT_NE(table.find(" " + state + " "), std::string::npos) << table;
    EXPECT_NE(table.find(note), std::string::npos) << table;
  };
  EXPECT_EQ(held(), "");
  kill(pid, SIGSTOP);
  EXPECT_TRUE(eventually([&] {
    return held() == "stopped by a signal: kill -CONT " + std::to_string(pid) + " lets it run on";
  })) << held();
  shown("frozen", "stopped by a signal");
  kill(pid, SIGCONT);
  EXPECT_TRUE(eventually([&] { return held().empty(); })) << held();

  ASSERT_EQ(ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), 0);
  EXPECT_EQ(held(), "") << "a tracer such as strace lets it run";
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(pid, nullptr, __WALL), pid);
  const std::string tracer = "stopped by its tracer, process " + std::to_string(getpid()) + " (";
  EXPECT_TRUE(held().starts_with(tracer)) << held();
  shown("held", tracer);
  EXPECT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return held().empty(); })) << held();

  ASSERT_EQ(kymod.kymo({"freeze", "process", "work"}).exit_code, 0);
  EXPECT_TRUE(held().starts_with("stopped by the frozen cgroup /sys/fs/cgroup/")) << held();
  shown("frozen", "stopped by the frozen cgroup");
  ASSERT_EQ(kymod.kymo({"unfreeze", "process", "work"}).exit_code, 0);
  EXPECT_EQ(held(), "");
}

}  // namespace
}  // namespace kymo::test
