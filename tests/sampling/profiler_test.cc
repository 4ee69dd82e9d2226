#include "kymo/profiler.h"

#include <sched.h>

#include <thread>

#include "temporary_folder.h"
#include "test_sinks.h"

namespace kymo {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class ProfilerTest : public TemporaryFolderTest {
 protected:
  ProfilerTest()
      : counter_(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}).value()) {}

  ProfilerOptions options() {
    ProfilerOptions options;
    options.sink = sink_;
    return options;
  }
  std::string refusal(const ProfilerOptions& options) {
    const Result<void> started = Profiler(registry_, options).start();
    return started ? "started" : started.error().message;
  }

  Registry registry_;
  Counter counter_;
  std::shared_ptr<KeepingSink> sink_ = std::make_shared<KeepingSink>();
};

TEST_F(ProfilerTest, RefusesAnIntervalOfZero) {
  ProfilerOptions bad = options();
  bad.interval = nanoseconds(0);
  EXPECT_EQ(refusal(bad), "profiler option interval = 0 ns: allowed is 100 ns to 24 hours");
}

TEST_F(ProfilerTest, RefusesEachOptionOutOfRangeByName) {
  ProfilerOptions bad = options();
  bad.slots = 1;
  EXPECT_NE(refusal(bad).find("option slots = 1"), std::string::npos);
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
  bad.cpu = -2;
  EXPECT_NE(refusal(bad).find("option cpu = -2"), std::string::npos);
  bad = options();
  bad.sink = nullptr;
  EXPECT_NE(refusal(bad).find("option sink"), std::string::npos);
  bad = options();
  bad.metrics = {"stepz"};
  EXPECT_EQ(refusal(bad), "no metric is named 'stepz'; did you mean steps?");
}

TEST_F(ProfilerTest, RefusesASecondStart) {
  Profiler profiler(registry_, options());
  ASSERT_TRUE(profiler.start());
  const Result<void> again = profiler.start();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::failed_precondition);
  ASSERT_TRUE(profiler.stop());
  EXPECT_FALSE(profiler.start());
}

TEST_F(ProfilerTest, StopWithoutAStartIsHarmless) {
  Profiler profiler(registry_, options());
  EXPECT_TRUE(profiler.stop());
  EXPECT_TRUE(profiler.stop());
  EXPECT_EQ(sink_->closed, 0);
  EXPECT_EQ(profiler.now_ns(), 0U);
}

TEST_F(ProfilerTest, StopIsOnceAndTakesALastSample) {
  Profiler profiler(registry_, options());
  ASSERT_TRUE(profiler.start());
  EXPECT_TRUE(profiler.running());
  std::this_thread::sleep_for(milliseconds(5));
  counter_.add(77);
  ASSERT_TRUE(profiler.stop());
  EXPECT_FALSE(profiler.running());
  ASSERT_TRUE(profiler.stop());
  EXPECT_EQ(sink_->closed, 1);
  ASSERT_FALSE(sink_->kept.empty());
  EXPECT_EQ(sink_->kept.back()[1], 77U);
}

TEST_F(ProfilerTest, StopDoesNotWaitForADistantDeadline) {
  ProfilerOptions slow = options();
  slow.interval = std::chrono::hours(1);
  Profiler profiler(registry_, slow);
  ASSERT_TRUE(profiler.start());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(profiler.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(sink_->kept.size(), 1U);
}

TEST_F(ProfilerTest, RowsAreOnTimeAndInOrder) {
  Profiler profiler(registry_, options());
  ASSERT_TRUE(profiler.start());
  std::this_thread::sleep_for(milliseconds(300));
  ASSERT_TRUE(profiler.stop());
  const ProfilerStats stats = profiler.stats();
  EXPECT_EQ(stats.rows_written, sink_->kept.size());
  EXPECT_EQ(stats.rows_written + stats.missed(), stats.ticks_due);
  EXPECT_GE(stats.ticks_due, 290U);
  for (std::size_t i = 1; i < sink_->kept.size(); ++i) {
    ASSERT_GT(sink_->kept[i][0], sink_->kept[i - 1][0]);
  }
}

TEST_F(ProfilerTest, SaysWhatItWentOnWithout) {
  ASSERT_TRUE(registry_.callback({"slow", "help", Kind::gauge, Unit::count, {}}, [] {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return 0ULL;
  }));
  ProfilerOptions hard = options();
  hard.interval = std::chrono::microseconds(10);
  hard.cpu = CPU_SETSIZE - 1;
  Profiler profiler(registry_, hard);
  ASSERT_TRUE(profiler.start());
  const std::vector<std::string> warnings = profiler.warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("an interval of 10000 ns cannot be held"), std::string::npos);
  EXPECT_NE(warnings[1].find("not pinned to CPU 1023"), std::string::npos);
  while (profiler.stats().missed_late == 0) {  // as the first warning has foretold
    std::this_thread::yield();
  }
  ASSERT_TRUE(profiler.stop());
}

TEST_F(ProfilerTest, WritesATsvThatDescribesItself) {
  ProfilerOptions to_file;
  to_file.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, to_file);
  ASSERT_TRUE(register_profiler_metrics(registry_, profiler));
  ASSERT_TRUE(profiler.start());
  std::this_thread::sleep_for(milliseconds(50));
  ASSERT_TRUE(profiler.stop());
  const std::vector<std::string> tsv = lines(in_folder("run.tsv"));
  EXPECT_EQ(tsv.front().substr(0, 29), "Time (ns)\tsteps\tprofiler_rows");
  EXPECT_EQ(tsv.size() - 1, profiler.stats().rows_written);
  EXPECT_EQ(content(in_folder("run.tsv")).size(), profiler.stats().bytes_written);
  EXPECT_NE(content(in_folder("run.meta.json")).find("\"state\": \"ended\""), std::string::npos);
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")).front(), "Start (ns)\tEnd (ns)\tTicks\tCause");
}

TEST_F(ProfilerTest, RefusesATsvInAMissingFolderOrOverAnother) {
  ProfilerOptions to_file;
  to_file.sink = make_tsv_sink(in_folder("none/run.tsv"));
  EXPECT_NE(refusal(to_file).find("create its folder first"), std::string::npos);
  to_file.sink = make_tsv_sink(in_folder("run.csv"));
  EXPECT_NE(refusal(to_file).find("ends in .tsv"), std::string::npos);
  to_file.sink = make_tsv_sink(in_folder("run.tsv"));
  EXPECT_EQ(refusal(to_file), "started");
  to_file.sink = make_tsv_sink(in_folder("run.tsv"));
  EXPECT_NE(refusal(to_file).find("choose another name"), std::string::npos);
}

}  // namespace
}  // namespace kymo
