#include "checkpoint/runtimes/process/half_restored.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

class HalfRestoredTest : public testing::Test {
 protected:
  HalfRestoredTest() {
    reaper_ = Reaper::start([](const ProcessId&, int) {}).value();
  }
  ~HalfRestoredTest() override {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  void start_child() {
    child_ = ::fork();
    for (; child_ == 0;) ::pause();
  }
  // Waits until a process that starts now has a later start time than one that started before.
  static void let_ticks_pass() {
    ::usleep(3 * 1'000'000 / static_cast<useconds_t>(::sysconf(_SC_CLK_TCK)));
  }
  [[nodiscard]] bool is_killed() const { return probe::life_of(child_, 0) == probe::Life::ended; }

  std::unique_ptr<Reaper> reaper_;
  pid_t child_ = 0;
};

TEST_F(HalfRestoredTest, AChildOfTheTimeOfCriuIsKilled) {
  TimeOfCriu time;
  start_child();
  time.ended();
  EXPECT_TRUE(kill_half_restored(child_, time, *reaper_));
  EXPECT_TRUE(is_killed());
}

TEST_F(HalfRestoredTest, AChildThatBeganBeforeOrAfterIsNotTouched) {
  TimeOfCriu before;
  before.ended();
  let_ticks_pass();
  start_child();
  let_ticks_pass();
  TimeOfCriu after;
  after.ended();
  EXPECT_FALSE(kill_half_restored(child_, before, *reaper_));
  EXPECT_FALSE(kill_half_restored(child_, after, *reaper_));
  EXPECT_FALSE(is_killed());
}

TEST_F(HalfRestoredTest, WhatTheReaperWatchesIsNotTouched) {
  TimeOfCriu time;
  start_child();
  time.ended();
  const auto seen = probe::read_process(child_).value();
  ASSERT_TRUE(reaper_->watch({child_, seen.start_ticks}).ok());
  EXPECT_FALSE(kill_half_restored(child_, time, *reaper_));
  EXPECT_FALSE(is_killed());
  ::kill(child_, SIGKILL);
  EXPECT_TRUE(reaper_->wait_reaped(child_, std::chrono::seconds(30)));
  child_ = 0;
}

TEST_F(HalfRestoredTest, AProcessThatIsNoChildIsNotTouched) {
  TimeOfCriu time;
  time.ended();
  EXPECT_FALSE(kill_half_restored(::getppid(), time, *reaper_));
}

}  // namespace
}  // namespace kymo::runtime
