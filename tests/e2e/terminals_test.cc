// Containers with a terminal: whatever kymod dumps, it can restore, and what it could not restore, it refuses to dump.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// Whether the standard output of the job is a terminal.
bool writes_to_terminal(const Kymod& kymod, const std::string& job) {
  const std::string output = "/proc/" + std::to_string(kymod.job(job)["pid"].get<int>()) + "/fd/1";
  return std::filesystem::read_symlink(output).string().starts_with("/dev/pts/");
}

// runc and containerd with a terminal are refused: RuncTerminalTest, ContainerdTest.
void expect_restorable_or_refused(Kind kind) {
  KYMO_NEEDS_CRIU();
  if (!why_not(kind).empty()) GTEST_SKIP() << why_not(kind);
  const BreakableCriu criu;
  const std::unique_ptr<Counting> counting = Counting::make(kind, criu);
  std::vector<std::string> flags = counting->flags();
  flags.insert(flags.end(), {"--criu", criu.path()});
  Kymod kymod(flags);
  kymod.start();
  std::vector<std::string> run = counting->run();
  const auto end_of_options = std::find(run.begin(), run.end(), "--");
  ASSERT_NE(end_of_options, run.end());
  run.insert(end_of_options + 1, "-t");
  static_cast<void>(kymod.kymo_json(run));
  ASSERT_TRUE(eventually([&] { return counting->counts(); })) << kymod.log();
  ASSERT_TRUE(writes_to_terminal(kymod, counting->name()));

  const std::string dir = kymod.path("c");
  const Outcome dumped = kymod.kymo({"dump", "process", counting->name(), "--dir", dir});
  if (dumped.exit_code == 0) {
    counting->forget();
    const Outcome restored = kymod.kymo({"restore", dir});
    EXPECT_EQ(restored.exit_code, 0) << "it was dumped and is lost: " << restored.err;
  } else {
    EXPECT_NE(dumped.err.find("it has a terminal"), std::string::npos) << dumped.err;
    EXPECT_EQ(std::count(dumped.err.begin(), dumped.err.end(), '\n'), 1) << dumped.err;
    EXPECT_TRUE(kymod.kymo_json({"checkpoints"}).empty()) << "it must be refused before its dump";
  }
  EXPECT_TRUE(counting->counts()) << dumped.err << kymod.log();
  EXPECT_TRUE(writes_to_terminal(kymod, counting->name()));
}

TEST(ContainerTerminalTest, OfPodmanIsRestorableOrRefusedBeforeItsDump) {
  expect_restorable_or_refused(Kind::podman);
}
TEST(ContainerTerminalTest, OfDockerIsRestorableOrRefusedBeforeItsDump) {
  expect_restorable_or_refused(Kind::docker);
}

}  // namespace
}  // namespace kymo::test
