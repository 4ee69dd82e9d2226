#include "daemon/request/dump_record.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

// Dumps at the levels 1 and 12 were compared as if they had the same options.
TEST(DumpRecord, DumpsAtDifferentLevelsHaveDifferentConditions) {
  v1::DumpRequest asked;
  const auto with = [&asked](criu::Compression compression, int level) {
    return conditions_of(asked, criu::Encoding{compression, level}, false, false);
  };
  EXPECT_EQ(conditions_of(asked, {}, false, false), "");
  EXPECT_EQ(with(criu::Compression::none, 0), "");
  EXPECT_EQ(with(criu::Compression::zstd, 0), "stream zstd");
  EXPECT_EQ(with(criu::Compression::zstd, 1), "stream zstd");
  asked.set_leave_running(true);
  EXPECT_EQ(with(criu::Compression::zstd, 12), "leave running, stream zstd level 12");
}

}  // namespace
}  // namespace kymo::daemon
