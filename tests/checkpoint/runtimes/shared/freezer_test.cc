// Cgroup version 2 is simulated in a temporary folder, because the machines that run the tests
// freeze by version 1.

#include "checkpoint/runtimes/shared/freezer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/process/freeze.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/container_calls.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

class FakeCgroup : public testing::Test {
 protected:
  void group(const std::string& lines) {
    folder_.folder("proc/7");
    folder_.file("proc/7/cgroup", lines);
  }
  Result<Freezer> freezer() const {
    return Freezer::of(7, folder_.path() + "/proc", folder_.path() + "/sys");
  }
  test::TemporaryDirectory folder_;
};

TEST_F(FakeCgroup, OfVersionTwoIsFrozenByCgroupFreeze) {
  group("0::/web\n");
  folder_.folder("sys/web");
  folder_.file("sys/web/cgroup.freeze", "0\n");
  folder_.file("sys/web/cgroup.events", "populated 1\nfrozen 0\n");
  const Result<Freezer> found = freezer();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->version(), 2);
  EXPECT_FALSE(found->frozen());
  EXPECT_EQ(found->set(true, std::chrono::milliseconds(10)).error().code, Code::deadline_exceeded)
      << "cgroup.events does not report the freeze yet";
  EXPECT_TRUE(found->frozen());
  folder_.file("sys/web/cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_TRUE(found->set(true).ok());
  folder_.file("sys/web/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_TRUE(found->set(false).ok());
  EXPECT_FALSE(found->frozen());
}

TEST_F(FakeCgroup, WhereBothVersionsHaveAFreezerVersionOneFreezes) {
  group("6:freezer:/web\n0::/web\n");
  folder_.folder("sys/unified/web");
  folder_.file("sys/unified/web/cgroup.freeze", "0\n");
  EXPECT_EQ(freezer()->version(), 2) << "version 2 is used if version 1 has no freezer";
  folder_.folder("sys/freezer/web");
  folder_.file("sys/freezer/web/freezer.state", "THAWED\n");
  folder_.file("sys/freezer/web/freezer.self_freezing", "0\n");
  EXPECT_EQ(freezer()->version(), 1);
  EXPECT_TRUE(freezer()->set(false).ok());
}

TEST_F(FakeCgroup, TheFrozenOneMayBeAboveThatOfTheProcess) {
  group("6:freezer:/all/web\n");
  folder_.folder("sys/freezer/all/web");
  folder_.file("sys/freezer/all/web/freezer.state", "THAWED\n");
  folder_.file("sys/freezer/all/web/freezer.self_freezing", "0\n");
  const std::string all = folder_.path() + "/sys/freezer/all";
  const auto frozen = [&] {
    return frozen_cgroup(7, folder_.path() + "/proc", folder_.path() + "/sys");
  };
  EXPECT_EQ(frozen(), "");
  folder_.file("sys/freezer/all/freezer.self_freezing", "1\n");
  EXPECT_EQ(frozen(), all);
  folder_.file("sys/freezer/all/web/freezer.self_freezing", "1\n");
  EXPECT_EQ(frozen(), all + "/web");
}

TEST_F(FakeCgroup, WithoutAFreezerSaysSo) {
  group("1:cpu:/web\n");
  EXPECT_EQ(freezer().error().code, Code::failed_precondition);
}

// Starts a child that has a child of its own.
pid_t start_tree() {
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    static_cast<void>(fork());
    for (;;) pause();
  }
  return pid;
}

TEST(FreezeProcessTest, AProcessAndItsChildrenAreFrozenAndGoOn) {
  KYMO_NEEDS_CRIU();
  const pid_t pid = start_tree();
  const ProcessId process = identify(pid);
  EXPECT_TRUE(test::eventually([&] { return probe::process_tree(pid).size() == 2; }));
  const Result<std::string> how = freeze_process(process);
  EXPECT_TRUE(how.ok()) << (how ? "" : how.error().message);
  const Result<Freezer> freezer = Freezer::of(pid);
  const bool by_cgroup = freezer.ok() && freezer->frozen();
  if (by_cgroup && freezer->version() == 1) {
    EXPECT_NE(freezer->folder().find("/kymo-frozen-"), std::string::npos);
    for (const pid_t member : probe::process_tree(pid)) {
      EXPECT_EQ(Freezer::of(member)->folder(), freezer->folder());
    }
  }
  EXPECT_FALSE(freeze_process(process).ok());
  const Result<std::string> back = unfreeze_process(process);
  EXPECT_TRUE(back.ok()) << (back ? "" : back.error().message);
  EXPECT_FALSE(unfreeze_process(process).ok());
  if (by_cgroup) {
    EXPECT_FALSE(fs::exists(freezer->folder()));
  }
  for (const pid_t member : probe::process_tree(pid)) kill(member, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST(FreezeProcessTest, RefusesItselfAndProcessesThatAreGone) {
  EXPECT_EQ(freeze_process(identify(getpid())).error().code, Code::invalid_argument);
  EXPECT_EQ(freeze_process(identify(getppid())).error().code, Code::invalid_argument);
  EXPECT_EQ(freeze_process({getpid(), 1}).error().code, Code::not_found);
}

// On a busy machine, runc may give up, and is called again. Other failures are reported at once.
TEST(FreezeContainerTest, IsAskedAgainIfRuncGaveUp) {
  const FreezeSpec self{identify(getpid()), "web"};
  int calls = 0;
  const auto freeze = [&](int failures, const char* message) {
    calls = 0;
    return freeze_container(self, true, "runc pause", [&]() -> Result<void> {
      if (++calls <= failures) return Error{Code::failed_precondition, message};
      return {};
    });
  };
  EXPECT_TRUE(freeze(2, "unable to freeze").ok());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(freeze(100, "unable to freeze").error().message,
            "freeze container web: unable to freeze");
  EXPECT_EQ(calls, 5);
  EXPECT_FALSE(freeze(1, "no such container").ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace kymo::runtime
