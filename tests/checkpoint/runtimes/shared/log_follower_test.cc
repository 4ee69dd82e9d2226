#include "checkpoint/runtimes/shared/log_follower.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

std::vector<std::string> notifications_in(const std::string& log) {
  std::vector<std::string> seen;
  LogFollower follower(log, [&](std::string_view name) { seen.emplace_back(name); });
  follower.finish();
  return seen;
}

TEST(LogFollowerTest, ReportsWhatIsInTheLogAndFollowsNoLinkInItsPlace) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.file("restore.log",
                                      "(00.000000) Version: 4.2.1\n"
                                      "(00.000500) Running pre-restore scripts\n");
  EXPECT_EQ(notifications_in(log), std::vector<std::string>{"pre-restore"});
  const std::string link = folder.path() + "/link";
  std::filesystem::create_symlink(log, link);
  EXPECT_TRUE(notifications_in(link).empty());
}

}  // namespace
}  // namespace kymo::runtime
