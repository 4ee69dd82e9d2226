#include "checkpoint/runtimes/shared/log_phases.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// A checkpoint may have a link in place of the log, to a file that the checkpoint's owner may not
// read.
TEST(LogPhasesTest, ALinkInPlaceOfTheLogIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.file("dump.log",
                                      "(00.000000) Version: 4.2.1\n"
                                      "(00.000500) Running pre-dump scripts\n"
                                      "(00.002000) Dumping finished successfully\n");
  const std::string link = folder.path() + "/restore.log";
  std::filesystem::create_symlink(log, link);
  const LogClock clock;
  EXPECT_GT(add_dump_phases(log, {}, clock, {}), 0U);
  EXPECT_EQ(add_dump_phases(link, {}, clock, {}), 0U);
  EXPECT_EQ(add_restore_phases(link, {}, clock, {}), 0U);
}

}  // namespace
}  // namespace kymo::runtime
