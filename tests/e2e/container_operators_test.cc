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
