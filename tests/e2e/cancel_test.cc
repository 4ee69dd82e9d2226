// A restore that is cancelled before CRIU starts. faults/beside.cc has the other cancellations.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/proc/process.h"
#include "programs.h"
#include "support/real_criu.h"
#include "support/says.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

TEST(CancelTest, ARestoreWhoseChecksumsAreComparedByAProcessWithoutRights) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(16, "work"));
  const TemporaryDirectory folder;
  const std::string fast = folder.folder("checkpoints");
  const std::string dir = folder.folder("slowly-read");
  // At this rate, reading 16 MiB takes longer than a cancellation on any machine.
  const SlowMount mount(fast, dir, "200k", SlowMount::Slow::reading);
  ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
  static_cast<void>(
      kymod.kymo_json({"dump", "process", "work", "--checksums", "--dir", fast + "/one"}));
  Outcome restore;
  std::thread client([&] { restore = kymod.kymo({"restore", dir + "/one"}); });
  std::string status;
  const std::string pages = dir + "/one/images/pages-1.img";
  EXPECT_TRUE(eventually([&] { return !(status = status_of_reader(pages)).empty(); }));
  const std::vector<pid_t> children = probe::children_of(getpid()).value();
  for (const pid_t child : children) {
    const Result<probe::Process> seen = probe::read_process(child);
    if (seen && seen->name == "kymo") kill(child, SIGINT);
  }
  client.join();
  EXPECT_TRUE(has_no_rights(status)) << status;
  EXPECT_EQ(restore.exit_code, 130) << restore.err;
  EXPECT_SAYS(restore.err, "the request was cancelled");
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  EXPECT_FALSE(fs::exists(fast + "/one/recordings/restore.tsv"));
  EXPECT_TRUE(eventually([&] { return status_of_reader(pages).empty(); }))
      << "the reader still reads";
}

}  // namespace
}  // namespace kymo::test
