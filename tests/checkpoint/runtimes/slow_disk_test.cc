// The bytes of a dump are reported while they are written, and a dump can be cancelled meanwhile.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "base/cancellation.h"
#include "base/proc/directory_bytes.h"
#include "checkpoint/criu/drive/image_streamer.h"
#include "checkpoint/runtimes/process/process_runtime.h"
#include "churn.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// CRIU is stopped where it begins to write the memory, and held where all is written. Each time the test waits until
// the bytes written so far were reported.
TEST(SlowDiskTest, BytesAreSeenWhileTheyAreWritten) {
  KYMO_NEEDS_CRIU();
  const test::TemporaryDirectory folder;
  const test::BreakableCriu criu;
  ProcessRuntimeOptions options;
  options.criu.path = criu.path();
  const std::unique_ptr<Runtime> runtime = make_process_runtime(std::move(options));
  constexpr std::uint64_t kMemory = 32U << 20U;
  const Churn churn(*runtime, folder, 32);

  std::vector<std::uint64_t> totals;
  std::vector<std::string> notifications;
  std::atomic<std::uint64_t> seen{0};
  Observer observer;
  observer.notified = [&](std::string_view name) {
    notifications.emplace_back(name);
    if (name != "post-dump") return;
    EXPECT_TRUE(test::eventually([&] { return seen >= kMemory; })) << seen;
  };
  observer.image_bytes = [&](std::uint64_t total) {
    totals.push_back(total);
    seen = total;
  };
  const std::string images = folder.folder("images");
  criu.break_at("Dumping pages (type", SIGSTOP);
  auto dumping = std::async(std::launch::async, [&] {
    return runtime->dump({churn.id(), images, folder.folder("work"), false}, observer);
  });
  const pid_t stopped = criu.stopped();
  ASSERT_NE(stopped, 0);
  EXPECT_TRUE(test::eventually([&] { return seen > 0; }));
  EXPECT_LT(seen, kMemory);
  kill(stopped, SIGCONT);
  const Result<DumpOutcome> dump = dumping.get();
  ASSERT_TRUE(dump.ok()) << dump.error().message;

  EXPECT_TRUE(std::is_sorted(totals.begin(), totals.end()));
  const Result<std::uint64_t> sum = probe::directory_bytes(images);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(totals.back(), *sum);
  EXPECT_GE(*sum, kMemory);
  for (const char* name : {"pre-dump", "post-dump"}) {
    EXPECT_NE(std::find(notifications.begin(), notifications.end(), name), notifications.end())
        << name;
  }
}

// CRIU may be writing the memory of a frozen process at that time. In a streamed dump, all images may have arrived
// but not be on the disk yet.
TEST(SlowDiskTest, ADumpThatIsCancelledMeanwhileLeavesTheProcessRunning) {
  KYMO_NEEDS_CRIU();
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream ? "streamed" : "written by CRIU");
    const test::TemporaryDirectory folder;
    const std::string images = folder.folder("slow");
    const test::SlowMount mount(folder.folder("disk"), images, "16M");
    ASSERT_TRUE(mount.mounted()) << "bindfs does not work here";
    ProcessRuntimeOptions options;
    options.criu.path = test::criu_path();
    const std::unique_ptr<Runtime> runtime = make_process_runtime(std::move(options));
    const Churn churn(*runtime, folder, 64);

    Cancellation cancel;
    DumpSpec spec{churn.id(), images, folder.folder("work"), false};
    spec.cancel = &cancel;
    if (stream) spec.stream = criu::Encoding{};
    Observer observer;
    observer.image_bytes = [&](std::uint64_t total) {
      if (total > 8U << 20U && !cancel.asked()) cancel.ask();
    };
    const Result<DumpOutcome> dump = runtime->dump(spec, observer);
    ASSERT_FALSE(dump.ok());
    EXPECT_EQ(dump.error().code, Code::cancelled) << dump.error().message;
    EXPECT_TRUE(churn.goes_on());
    criu::wait_for_streamer(images);
  }
}

}  // namespace
}  // namespace kymo::runtime
