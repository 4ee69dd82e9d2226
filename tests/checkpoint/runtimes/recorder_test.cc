// A program that embeds libkymo is dumped and restored while it records itself.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/proc/process.h"
#include "base/sanitizers.h"
#include "checkpoint/runtimes/process/process_runtime.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using test::eventually;

struct GapLine {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t ticks = 0;
  std::string cause;
};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
#if KYMO_THREAD_SANITIZER
    GTEST_SKIP() << "CRIU cannot restore the memory that ThreadSanitizer reserves";
#endif
    KYMO_NEEDS_CRIU();
    ProcessRuntimeOptions options;
    options.criu.path = test::criu_path();
    runtime_ = make_process_runtime(std::move(options));
  }
  void TearDown() override {
    if (id_.pid > 0) {
      ::kill(id_.pid, SIGKILL);
    }
  }

  void start(const std::vector<std::string>& more = {}) {
    RunSpec spec;
    spec.command = {KYMO_TEST_RECORDER, tsv()};
    spec.command.insert(spec.command.end(), more.begin(), more.end());
    spec.directory = folder_.path();
    spec.stdout_path = folder_.path() + "/out";
    spec.stderr_path = folder_.path() + "/err";
    const Result<ProcessId> started = runtime_->run(spec);
    ASSERT_TRUE(started.ok()) << started.error().message;
    id_ = *started;
    ASSERT_TRUE(eventually([&] { return !rows(tsv()).empty(); })) << content(spec.stderr_path);
  }
  void dump(bool leave_running, const Observer& observer = {}) {
    const Result<DumpOutcome> dumped = runtime_->dump(
        {id_, folder_.folder("images"), folder_.folder("work"), leave_running}, observer);
    ASSERT_TRUE(dumped.ok()) << dumped.error().message;
  }
  void restore() {
    const Result<RestoreOutcome> restored =
        runtime_->restore({folder_.path() + "/images", folder_.path() + "/work"}, {});
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    id_ = restored->process;
  }
  nlohmann::json stop() {
    ::kill(id_.pid, SIGTERM);
    EXPECT_TRUE(eventually([&] { return !content(folder_.path() + "/out").empty(); }))
        << content(folder_.path() + "/err");
    EXPECT_TRUE(eventually([&] { return !probe::read_process(id_.pid).ok(); }));
    id_.pid = 0;
    return nlohmann::json::parse(content(folder_.path() + "/out"), nullptr, false);
  }

  [[nodiscard]] std::string tsv(int part = 0) const {
    return folder_.path() + (part == 0 ? "/run.tsv" : "/run." + std::to_string(part) + ".tsv");
  }
  // The complete rows of a recording that may still be written.
  static std::vector<std::vector<std::uint64_t>> rows(const std::string& path) {
    std::istringstream text(content(path));
    std::string line;
    std::getline(text, line);
    std::vector<std::vector<std::uint64_t>> all;
    for (std::uint64_t time = 0, steps = 0; std::getline(text, line) && !text.eof();) {
      std::istringstream(line) >> time >> steps;
      all.push_back({time, steps});
    }
    return all;
  }
  static void expect_rising(const std::vector<std::vector<std::uint64_t>>& all) {
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_LT(all[i - 1][0], all[i][0]) << "row " << i;
      ASSERT_LE(all[i - 1][1], all[i][1]) << "a counter went back at row " << i;
    }
  }
  static std::vector<GapLine> frozen_gaps(const std::string& tsv) {
    std::ifstream file(tsv.substr(0, tsv.size() - 4) + ".gaps.tsv");
    std::string line;
    std::getline(file, line);
    std::vector<GapLine> gaps;
    for (GapLine gap; file >> gap.start >> gap.end >> gap.ticks >> gap.cause;) {
      if (gap.cause == "frozen") {
        gaps.push_back(gap);
      }
    }
    return gaps;
  }
  static std::uint64_t monotonic_ms() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<Runtime> runtime_;
  ProcessId id_;
};

TEST_F(RecorderTest, DumpedAndKilledAndRestoredItGoesOnWithOneGapOfTheRightLength) {
  start();
  const std::uint64_t begin_ms = monotonic_ms();
  dump(false);
  const std::size_t rows_before = rows(tsv()).size();
  std::this_thread::sleep_for(milliseconds(1000));  // how long the process is away
  restore();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_before + 300; }))
      << content(folder_.path() + "/err");
  const std::uint64_t back_within_ms = monotonic_ms() - begin_ms;
  const nlohmann::json result = stop();
  const auto all = rows(tsv());
  expect_rising(all);
  EXPECT_EQ(all.size() + result["missed"].get<std::uint64_t>(),
            result["ticks_due"].get<std::uint64_t>());
  const std::vector<GapLine> gaps = frozen_gaps(tsv());
  std::vector<GapLine> long_ones;
  std::copy_if(gaps.begin(), gaps.end(), std::back_inserter(long_ones),
               [](const GapLine& gap) { return gap.ticks > 900; });
  ASSERT_EQ(long_ones.size(), 1U) << content(folder_.path() + "/run.gaps.tsv");
  EXPECT_LE(long_ones[0].ticks, back_within_ms);
  EXPECT_GE(long_ones[0].ticks, 1000U);
  EXPECT_EQ(long_ones[0].end - long_ones[0].start, long_ones[0].ticks * 1'000'000);
}

TEST_F(RecorderTest, ADumpThatLeavesItRunningIsAFrozenGap) {
  start();
  Observer slow;  // CRIU waits until the observer returns
  slow.notified = [](std::string_view name) {
    // Longer than Standstill::kMinNs: a shorter standstill counts as late.
    if (name == "post-dump") std::this_thread::sleep_for(milliseconds(100));
  };
  dump(true, slow);
  const std::size_t rows_before = rows(tsv()).size();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_before + 200; }));
  const nlohmann::json result = stop();
  expect_rising(rows(tsv()));
  EXPECT_EQ(rows(tsv()).size() + result["missed"].get<std::uint64_t>(),
            result["ticks_due"].get<std::uint64_t>());
  EXPECT_FALSE(frozen_gaps(tsv()).empty()) << content(folder_.path() + "/run.gaps.tsv");
}

// The recording then has rows that the restored process does not know.
TEST_F(RecorderTest, RestoredFromAnOlderImageItBeginsANewPart) {
  start();
  dump(true);
  const std::size_t rows_at_dump = rows(tsv()).size();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_at_dump + 300; }));
  ::kill(id_.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !probe::read_process(id_.pid).ok(); }));
  const std::string first = content(tsv());
  restore();
  ASSERT_TRUE(eventually([&] { return rows(tsv(1)).size() > 300; }))
      << content(folder_.path() + "/err");
  static_cast<void>(stop());
  EXPECT_EQ(content(tsv()), first) << "the first part must not change";
  expect_rising(rows(tsv(1)));
  EXPECT_LT(rows(tsv(1)).front()[1], rows(tsv()).back()[1])
      << "the counters must have the values of the image";
  const auto meta = nlohmann::json::parse(content(folder_.path() + "/run.1.meta.json"));
  EXPECT_EQ(meta["part"]["previous"], "run.tsv");
  EXPECT_EQ(meta["state"], "ended");
}

TEST_F(RecorderTest, ItsRingFileIsRestoredWithIt) {
  start({folder_.path() + "/ring"});
  dump(false);
  const std::size_t rows_before = rows(tsv()).size();
  restore();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_before + 300; }))
      << content(folder_.path() + "/err");
  const nlohmann::json result = stop();
  EXPECT_EQ(result["missed_sink_error"], 0);
  expect_rising(rows(tsv()));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/ring"))
      << "the ring must be removed when the recording stops";
}

// The ring file, like the recording, then has rows that the restored process does not know.
TEST_F(RecorderTest, ARingThatIsAheadOfTheImageYieldsNoRowsOfTheOtherRun) {
  start({folder_.path() + "/ring"});
  dump(true);
  const std::size_t rows_at_dump = rows(tsv()).size();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_at_dump + 1000; }));
  ::kill(id_.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !probe::read_process(id_.pid).ok(); }));
  const std::string first = content(tsv());
  restore();
  ASSERT_TRUE(eventually([&] { return rows(tsv(1)).size() > 300; }))
      << content(folder_.path() + "/err");
  const nlohmann::json result = stop();
  EXPECT_TRUE(result["stopped"].get<bool>());
  EXPECT_EQ(content(tsv()), first);
  expect_rising(rows(tsv(1)));
  EXPECT_EQ(result["rows_written"].get<std::uint64_t>() + result["missed"].get<std::uint64_t>(),
            result["ticks_due"].get<std::uint64_t>());
}

TEST_F(RecorderTest, ARestoreIsRefusedWhileTheRingFileIsMissing) {
  const std::string ring = folder_.path() + "/ring";
  start({ring});
  dump(false);
  const auto bytes = std::filesystem::file_size(ring);
  std::filesystem::remove(ring);
  const Result<RestoreOutcome> refused =
      runtime_->restore({folder_.path() + "/images", folder_.path() + "/work"}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("ring"), std::string::npos) << refused.error().message;

  std::ofstream(ring).close();
  std::filesystem::permissions(ring, std::filesystem::perms{0600});
  std::filesystem::resize_file(ring, bytes);
  restore();
  const std::size_t rows_before = rows(tsv()).size();
  ASSERT_TRUE(eventually([&] { return rows(tsv()).size() > rows_before + 300; }))
      << content(folder_.path() + "/err");
  const nlohmann::json result = stop();
  expect_rising(rows(tsv()));
  EXPECT_EQ(rows(tsv()).size() + result["missed"].get<std::uint64_t>(),
            result["ticks_due"].get<std::uint64_t>());
}

}  // namespace
}  // namespace kymo::runtime
