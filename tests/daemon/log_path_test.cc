#include "daemon/log_path.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

TEST(LogPath, IsTheAskedOneWhileThatIsFree) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(free_log_path(folder.path() + "/run.tsv"), folder.path() + "/run.tsv");
  EXPECT_EQ(free_log_path("/no/such/folder/run.tsv"), "/no/such/folder/run.tsv");
}

// A restarted service was once refused because of its own earlier recording.
TEST(LogPath, LeavesWhatIsThereAndTakesTheNextFreeName) {
  const test::TemporaryDirectory folder;
  const std::string run = folder.file("run.tsv", "earlier");
  EXPECT_EQ(free_log_path(run), folder.path() + "/run-2.tsv");
  folder.file("run-2.tsv", "later");
  EXPECT_EQ(free_log_path(run), folder.path() + "/run-3.tsv");
  EXPECT_EQ(free_log_path(folder.file("run.tsv.zst", "")), folder.path() + "/run-2.tsv.zst");
  EXPECT_EQ(free_log_path(folder.file("plain", "")), folder.path() + "/plain-2");
}

}  // namespace
}  // namespace kymo::daemon
