// What an operator does with a container beside kymod.

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"
#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// Before the fix, such a process ended with the container, its images did not have it, and nothing said so.
TEST(ContainerCompanionsTest, OneThatWasStartedFromOutsideIsNotLostInADump) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  ASSERT_TRUE(runc.runc("exec --detach --pid-file " + bundle + "/pid kymo-web /bin/sleep 4711"));
  const pid_t companion = std::stoi(read_file(bundle + "/pid"));
  const auto lives = [&] {  // a zombie has no program
    std::error_code error;
    static_cast<void>(fs::read_symlink("/proc/" + std::to_string(companion) + "/exe", error));
    return !error;
  };
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string dir = kymod.path("one");
  const Outcome refused = kymod.kymo({"dump", "runc", "kymo-web", "--dir", dir});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("process " + std::to_string(companion) +
                             " (sleep) was started in it from outside"),
            std::string::npos)
      << refused.err;
  EXPECT_TRUE(lives());
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));

  const Outcome left = kymod.kymo({"dump", "runc", "kymo-web", "--leave-running"});
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_TRUE(lives());

  const Outcome forced = kymod.kymo({"dump", "runc", "kymo-web", "--dir", dir, "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_TRUE(eventually([&] { return !lives(); }));
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

// Before the fix, the next restore had runc delete the container, and with it the files of its root, which the runc that was
// killed with containerd had left mounted in its folder. Nothing could restore the container any more.
TEST(ContainerRootTest, IsKeptIfContainerdIsRestartedDuringARestore) {
  KYMO_NEEDS_CONTAINERD();
  const BreakableCriu criu;
  Containerd containerd(criu.folder());
  Kymod kymod;
  kymod.start();
  std::vector<std::string> words{"run",      "containerd", "--name",
                                 "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : counting_command()) words.push_back(word);
  static_cast<void>(kymod.kymo_json(words));
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "containerd", "kymo-web", "--dir", dir}));
  criu.break_at("Running pre-resume scripts", SIGSTOP);  // runc has written its state
  Outcome cut_short;
  std::thread client([&] { cut_short = kymod.kymo({"restore", dir}); });
  EXPECT_NE(criu.stopped(), 0) << kymod.log();
  criu.mend();
  containerd.restart();
  client.join();
  EXPECT_EQ(cut_short.exit_code, 1) << cut_short.out;
  Outcome restored;
  // kymod connects again up to a second later.
  ASSERT_TRUE(eventually([&] {
    restored = kymod.kymo({"restore", dir});
    return restored.err.find("no program listens") == std::string::npos;
  }));
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(containerd.status("kymo-web"), "RUNNING");
}

}  // namespace
}  // namespace kymo::test
