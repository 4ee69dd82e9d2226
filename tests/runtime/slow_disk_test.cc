// The bytes of a dump are seen while they are written: 128 MiB onto a disk that bindfs
// makes slow.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "churn.h"
#include "probe/directory_bytes.h"
#include "runtime/process_runtime.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

TEST(SlowDiskTest, BytesAreSeenWhileTheyAreWritten) {
  KYMO_NEEDS_CRIU();
  const test::TemporaryDirectory folder;
  const std::string images = folder.folder("slow");
  const test::SlowMount mount(folder.folder("disk"), images, "1G");
  ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
  ProcessRuntimeOptions options;
  options.criu.path = test::criu_path();
  const std::unique_ptr<Runtime> runtime = make_process_runtime(std::move(options));
  const Churn churn(*runtime, folder, 128);

  std::vector<std::uint64_t> totals;
  std::vector<std::string> notifications;
  const Result<DumpOutcome> dump =
      runtime->dump({churn.id(), images, folder.folder("work"), false},
                    {[&](std::string_view name) { notifications.emplace_back(name); },
                     [&](std::uint64_t total) { totals.push_back(total); }});
  ASSERT_TRUE(dump.ok()) << dump.error().message;

  EXPECT_TRUE(std::is_sorted(totals.begin(), totals.end()));
  const std::set<std::uint64_t> distinct(totals.begin(), totals.end());
  EXPECT_GE(distinct.size(), 100U);
  RecordProperty("distinct_totals", static_cast<int>(distinct.size()));
  const Result<std::uint64_t> sum = probe::directory_bytes(folder.path() + "/disk");
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(totals.back(), *sum);
  EXPECT_GE(*sum, 128U << 20U);
  for (const char* name : {"pre-dump", "post-dump"}) {
    EXPECT_NE(std::find(notifications.begin(), notifications.end(), name), notifications.end())
        << name;
  }
}

}  // namespace
}  // namespace kymo::runtime
