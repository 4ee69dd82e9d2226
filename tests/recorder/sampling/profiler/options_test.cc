#include "recorder/sampling/profiler/options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/temporary_folder.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class ProfilerOptionsTest : public TemporaryFolderTest {
 protected:
  ProfilerOptionsTest() {
    EXPECT_TRUE(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}));
  }
  static ProfilerOptions options() {
    ProfilerOptions options;
    options.sink = std::make_shared<KeepingSink>();
    return options;
  }
  static std::vector<std::string> names(std::size_t count) {
    std::vector<std::string> all;
    while (all.size() < count) all.push_back("v" + std::to_string(all.size()));
    return all;
  }
  std::string refusal(const ProfilerOptions& options) {
    const Result<void> started = Profiler(registry_, options).start();
    return started ? "started" : started.error().message;
  }

  Registry registry_;
};

TEST_F(ProfilerOptionsTest, RefusesAnIntervalOfZero) {
  ProfilerOptions bad = options();
  bad.interval = nanoseconds(0);
  EXPECT_EQ(refusal(bad), "profiler option interval = 0 ns: must be 100 ns to 24 hours");
}

// Before, parts of 300 ms lasted a second, because rows were handed over no sooner.
TEST_F(ProfilerOptionsTest, RowsAreHandedOverAsOftenAsTheSinkWants) {
  class Impatient final : public KeepingSink {
    [[nodiscard]] nanoseconds wants_rows_every() const override { return milliseconds(20); }
  };
  ProfilerOptions slow = options();
  slow.sink = std::make_shared<Impatient>();
  slow.flush = std::chrono::hours(24);
  slow.rows = 100'000;
  Profiler profiler(registry_, slow);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().rows_written == 0) std::this_thread::yield();
  ASSERT_TRUE(profiler.stop());
}

TEST_F(ProfilerOptionsTest, RefusesPartsThatAreTooShortAndSaysTheLeast) {
  ProfilerOptions bad = options();
  bad.sink = make_tsv_sink(in_folder("run.tsv"), {.rotate_after = milliseconds(50)});
  EXPECT_EQ(refusal(bad), "cannot record to " + in_folder("run.tsv") +
                              ": rotate_after = 50 ms: must be at least 100 ms");
  bad.sink = make_tsv_sink(in_folder("run.tsv"), {.rotate_after = milliseconds(300)});
  bad.interval = std::chrono::seconds(2);
  EXPECT_EQ(refusal(bad), "cannot record to " + in_folder("run.tsv") +
                              ": rotate_after = 300 ms: must be at least 2 s, the interval "
                              "between two rows");
  bad.interval = milliseconds(1);
  EXPECT_EQ(refusal(bad), "started");
}

// Before, a ring of many columns was taken without a word, and its size was known only afterwards.
TEST_F(ProfilerOptionsTest, TheSizeOfTheRingIsKnownBeforeItIsTaken) {
  ASSERT_TRUE(registry_.callback_family(
      {"many", "help", Kind::gauge, Unit::count, {{"one", names(100)}, {"two", names(100)}}},
      [](std::span<std::uint64_t>) {}));
  ProfilerOptions large = options();
  large.slots = 16;
  large.rows = 1000;
  large.max_ring_bytes = std::size_t{1} << 30U;
  constexpr std::size_t kRows = std::size_t{16} * 1000 * (1 + 10'001) * 8;
  const std::size_t said = Profiler(registry_, large).ring_bytes();
  EXPECT_GE(said, kRows);
  EXPECT_LE(said, kRows + 4096);
  large.max_ring_bytes = ProfilerOptions().max_ring_bytes;
  EXPECT_EQ(refusal(large),
            "start the recorder: its ring would take 1.19 GiB (16 slots of 1000 rows of 10001 "
            "columns), and "
            "max_ring_bytes is 256 MiB; record fewer columns (ProfilerOptions::metrics), choose "
            "fewer rows, or "
            "allow more");
  large.metrics = {"steps"};
  EXPECT_EQ(refusal(large), "started");
}

TEST_F(ProfilerOptionsTest, RefusesEachOptionOutOfRangeByName) {
  ProfilerOptions bad = options();
  bad.slots = 1;
  EXPECT_NE(refusal(bad).find("option slots = 1"), std::string::npos);
  bad = options();
  bad.pace = static_cast<Pace>(7);
  EXPECT_EQ(refusal(bad), "profiler option pace = 7: must be one of Pace");
  bad = options();
  bad.rows = 0;
  EXPECT_NE(refusal(bad).find("option rows = 0"), std::string::npos);
  bad = options();
  bad.flush = nanoseconds(-1);
  EXPECT_NE(refusal(bad).find("option flush = -1 ns"), std::string::npos);
  bad = options();
  bad.realtime_priority = 100;
  EXPECT_NE(refusal(bad).find("option realtime_priority = 100"), std::string::npos);
  bad = options();
  bad.max_spin_share = 1.5;
  EXPECT_NE(refusal(bad).find("option max_spin_share = 1.5"), std::string::npos);
  bad = options();
  bad.realtime_max_share = 0;
  EXPECT_NE(refusal(bad).find("option realtime_max_share = 0"), std::string::npos);
  bad = options();
  bad.nice = -21;
  EXPECT_NE(refusal(bad).find("option nice = -21"), std::string::npos);
  bad = options();
  bad.cpu = -2;
  EXPECT_NE(refusal(bad).find("option cpu = -2"), std::string::npos);
  bad = options();
  bad.prometheus_prefix = "9 x";
  EXPECT_NE(
      refusal(bad).find("option prometheus_prefix = '9 x': must be empty, or consist of letters"),
      std::string::npos);
  bad = options();
  bad.sink = nullptr;
  EXPECT_NE(refusal(bad).find("option sink"), std::string::npos);
  bad = options();
  bad.metrics = {"stepz"};
  EXPECT_EQ(refusal(bad), "no metric is named 'stepz'; did you mean steps?");
}

TEST_F(ProfilerOptionsTest, RefusesATsvInAMissingFolderOrOverAnother) {
  ProfilerOptions to_file;
  to_file.sink = make_tsv_sink(in_folder("none/run.tsv"));
  EXPECT_NE(refusal(to_file).find("create its folder first"), std::string::npos);
  to_file.sink = make_tsv_sink(in_folder("run.csv"));
  EXPECT_NE(refusal(to_file).find("ends in .tsv"), std::string::npos);
  to_file.sink = make_tsv_sink(in_folder("run.gaps.tsv"));
  EXPECT_NE(refusal(to_file).find("are for the gaps of a recording"), std::string::npos);
  to_file.sink = make_tsv_sink(in_folder("run.tsv"));
  EXPECT_EQ(refusal(to_file), "started");
  to_file.sink = make_tsv_sink(in_folder("run.tsv"));
  EXPECT_NE(refusal(to_file).find("choose another name"), std::string::npos);
}

}  // namespace
}  // namespace kymo
