// Dumps and restores through the image streamer, with the real CRIU.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>

#include "base/proc/directory_bytes.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/memory.h"
#include "checkpoint/runtimes/process/process_runtime.h"
#include "churn.h"
#include "support/real_criu.h"
#include "support/stop_points.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using criu::Compression;
using criu::Encoding;
using test::eventually;

// What an observer of a streamed dump or restore was told.
struct Heard {
  std::vector<std::string> notifications;
  std::vector<std::uint64_t> bytes;
  std::uint64_t page_bytes = 0;
  bool all_exact = true;

  Observer observer() {
    return {.notified = [this](std::string_view name) { notifications.emplace_back(name); },
            .image_bytes = nullptr,
            .moved =
                [this](std::uint64_t total, std::uint64_t pages, bool exact) {
                  bytes.push_back(total);
                  page_bytes = pages;
                  all_exact = all_exact && exact;
                }};
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::find(notifications.begin(), notifications.end(), name) != notifications.end();
  }
};

class StreamTest : public testing::TestWithParam<Compression> {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    use_criu(test::criu_path());
  }

  void use_criu(const std::string& path) {
    ProcessRuntimeOptions options;
    options.criu.path = path;
    // Still needed, because it reaps the processes that it has started.
    if (runtime_) earlier_.push_back(std::move(runtime_));
    runtime_ = make_process_runtime(std::move(options));
  }

  DumpSpec spec_of(const ProcessId& id, bool leave_running) {
    DumpSpec spec;
    spec.process = id;
    spec.images_dir = folder_.folder("images");
    spec.work_dir = folder_.folder("work");
    spec.leave_running = leave_running;
    spec.stream = Encoding{GetParam(), 0};
    return spec;
  }

  test::TemporaryDirectory folder_;
  std::vector<std::unique_ptr<Runtime>> earlier_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(StreamTest, TheProcessGoesOnCountingWithItsMemory) {
  Churn churn(*runtime_, folder_, 32);
  Heard dumped;
  const auto dump = runtime_->dump(spec_of(churn.id(), false), dumped.observer());
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  EXPECT_TRUE(dump->warnings.empty()) << dump->warnings.front();
  ASSERT_TRUE(dump->stats.has_value());
  EXPECT_GE(dump->stats->pages_written, 32U * 256U);
  for (const char* name : {"pre-dump", "post-dump"}) EXPECT_TRUE(dumped.has(name)) << name;
  EXPECT_TRUE(dumped.all_exact);
  EXPECT_TRUE(std::is_sorted(dumped.bytes.begin(), dumped.bytes.end()));
  EXPECT_EQ(dumped.page_bytes,
            (dump->stats->pages_written + dump->stats->shpages_written.value_or(0)) * 4096);
  const std::string images = folder_.path() + "/images";
  EXPECT_EQ(dump->image_bytes, *probe::directory_bytes(images));
  EXPECT_TRUE(fs::exists(images + "/inventory.img" + std::string(criu::suffix_of(GetParam()))));
  for (const auto& entry : fs::directory_iterator(images)) {
    EXPECT_FALSE(entry.is_socket()) << entry.path();
  }

  const long before = churn.count();
  Heard restored;
  const auto restore = runtime_->restore({images, folder_.folder("work")}, restored.observer());
  ASSERT_TRUE(restore.ok()) << restore.error().message;
  churn.replace(restore->process);
  EXPECT_TRUE(restore->warnings.empty()) << restore->warnings.front();
  ASSERT_TRUE(restore->stats.has_value());
  for (const char* name : {"pre-restore", "post-restore", "pre-resume", "post-resume"}) {
    EXPECT_TRUE(restored.has(name)) << name;
  }
  if (GetParam() != Compression::none) {
    EXPECT_TRUE(restored.all_exact);
    EXPECT_GE(restored.page_bytes, 32U << 20U);
  }
  EXPECT_TRUE(eventually([&] { return churn.count() > before; }));
  EXPECT_EQ(churn.errors(), "");  // the program checks its own memory
}

TEST_P(StreamTest, AllCanBeReadOfTheImages) {
  const Churn churn(*runtime_, folder_, 16);
  const auto dump = runtime_->dump(spec_of(churn.id(), true), {});
  ASSERT_TRUE(dump.ok()) << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
  const auto images = criu::ImageSet::open(folder_.path() + "/images");
  ASSERT_TRUE(images.ok()) << images.error().message;
  EXPECT_EQ(images->image_bytes(), dump->image_bytes);
  const criu::CheckpointPages pages = criu::read_pages(*images);
  EXPECT_TRUE(pages.notes.empty()) << pages.notes.front();
  EXPECT_EQ(pages.pages.present,
            dump->stats->pages_written + dump->stats->shpages_written.value_or(0));
  ASSERT_EQ(pages.processes.size(), 1U);
  EXPECT_EQ(pages.processes.front().command, "kymo-churn");
}

TEST_P(StreamTest, OnAFullDiskTheDumpFailsAndTheProcessRunsOn) {
  const Churn churn(*runtime_, folder_, 64);
  const std::string images = folder_.folder("images");
  ASSERT_EQ(mount("none", images.c_str(), "tmpfs", 0, "size=256k"), 0);
  const auto dump = runtime_->dump(spec_of(churn.id(), false), {});
  EXPECT_EQ(umount(images.c_str()), 0);
  ASSERT_FALSE(dump.ok());
  EXPECT_EQ(dump.error().code, Code::resource_exhausted) << dump.error().message;
  EXPECT_NE(dump.error().message.find("No space left"), std::string::npos) << dump.error().message;
  EXPECT_NE(dump.error().message.find("the process runs on"), std::string::npos)
      << dump.error().message;
  EXPECT_TRUE(churn.goes_on());
}

TEST_P(StreamTest, ATimeLimitEndsItAndTheProcessRunsOn) {
  const Churn churn(*runtime_, folder_, 32);
  const test::BreakableCriu criu;
  use_criu(criu.path());
  test::late_at(
      criu, "Dumping pages (type",
      [&](std::uint64_t deadline_ns) {
        DumpSpec limited = spec_of(churn.id(), false);
        limited.deadline_ns = deadline_ns;
        return runtime_->dump(limited, {});
      },
      [&](const Result<DumpOutcome>& dump) {
        ASSERT_FALSE(dump.ok());
        EXPECT_EQ(dump.error().code, Code::deadline_exceeded) << dump.error().message;
        fs::remove_all(folder_.path() + "/images");  // which is left to the caller
        EXPECT_TRUE(churn.goes_on());
      });
}

INSTANTIATE_TEST_SUITE_P(Each, StreamTest,
                         testing::Values(Compression::none, Compression::zstd, Compression::lz4),
                         [](const auto& chosen) {
                           return std::string(criu::name_of(chosen.param));
                         });

}  // namespace
}  // namespace kymo::runtime
