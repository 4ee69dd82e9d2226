// Containers with a terminal: whatever kymod dumps, it can restore, and what it could not restore, it refuses to dump.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "counted_job.h"

namespace kymo::test {
namespace {

// Whether the standard output of the job is a terminal.
bool writes_to_terminal(const Kymod& kymod, const std::string& job) {
  const std::string output = "/proc/" + std::to_string(kymod.job(job)["pid"].get<int>()) + "/fd/1";
  return std::filesystem::read_symlink(output).string().starts_with("/dev/pts/");
}

// runc and containerd with a terminal are refused: RuncTerminalTest, ContainerdTest.
void expect_restorable_or_refused(Kind kind) {
  KYMO_NEEDS(kind);
  const CountedJob job(kind, {"-t"});
  const Kymod& kymod = *job.kymod;
  Counting* const counting = job.counting.get();
  ASSERT_TRUE(writes_to_terminal(kymod, counting->name()));

  const std::string dir = job.dir();
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
