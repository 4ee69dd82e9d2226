#include "kymo/profiler.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "kymo/trouble.h"
#include "support/temporary_folder.h"
#include "support/test_sinks.h"

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
  Registry registry_;
  Counter counter_;
  std::shared_ptr<KeepingSink> sink_ = std::make_shared<KeepingSink>();
};

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

TEST_F(ProfilerTest, ACallbackThatBlocksIsNotWaitedForForEver) {
  std::atomic<bool> blocks = false;
  std::promise<void> release;
  ASSERT_TRUE(registry_.callback({"blocked", "help", Kind::gauge, Unit::count, {}},
                                 [&blocks, released = release.get_future().share()] {
                                   if (blocks) released.wait();
                                   return std::uint64_t{7};
                                 }));
  Profiler profiler(registry_, options());
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().rows_captured == 0) std::this_thread::sleep_for(milliseconds(1));
  TroubleWatch watch(profiler);
  blocks = true;
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::deadline_exceeded);
  EXPECT_NE(stopped.error().message.find("the callback of metric 'blocked' has not returned"),
            std::string::npos)
      << stopped.error().message;
  // The first look learns of the callback, the second one tells of it.
  EXPECT_TRUE(watch.look().empty());
  const std::vector<Trouble> hangs = watch.look();
  ASSERT_EQ(hangs.size(), 1U);
  EXPECT_TRUE(hangs[0].text.ends_with(": stop() cannot finish the recording until it does"))
      << hangs[0].text;
  release.set_value();
  EXPECT_TRUE(profiler.stop());
  const std::vector<Trouble> returned = watch.look();
  ASSERT_EQ(returned.size(), 1U);
  EXPECT_EQ(returned[0].text.find("goes on"), std::string::npos) << returned[0].text;
  const ProfilerStats stats = profiler.stats();
  EXPECT_GT(stats.rows_written, 0U);
  EXPECT_EQ(stats.rows_written + stats.missed(), stats.ticks_due);
}

// Before, the first row came an interval later, so what was counted until then was in no figure.
TEST_F(ProfilerTest, WhatIsCountedAfterStartIsInTheRecording) {
  ProfilerOptions rare = options();
  rare.interval = std::chrono::hours(1);
  Profiler profiler(registry_, rare);
  counter_.add(5);
  ASSERT_TRUE(profiler.start());
  EXPECT_EQ(profiler.stats().rows_captured, 1U);
  EXPECT_EQ(profiler.stats().timing_error_ns, 0U) << "it waited for no deadline";
  counter_.add(37);
  ASSERT_TRUE(profiler.stop());
  ASSERT_EQ(sink_->kept.size(), 2U);
  EXPECT_EQ(sink_->kept[0][1], 5U);
  EXPECT_EQ(sink_->kept[1][1], 42U);
  EXPECT_EQ(profiler.stats().ticks_due, 2U);
}

// Before, stop() was ok in the child, and nothing said that it recorded nothing.
TEST_F(ProfilerTest, AForkedChildIsToldThatItRecordsNothing) {
  Profiler profiler(registry_, options());
  TroubleWatch watch(profiler);
  ASSERT_TRUE(profiler.start());
  EXPECT_TRUE(watch.look().empty());
  const pid_t child = ::fork();
  if (child == 0) {
    const std::vector<Trouble> news = watch.look();
    const bool told = news.size() == 1 && news[0].what == Trouble::What::forked;
    const Result<void> stopped = profiler.stop();
    ::_exit(told && watch.look().empty() && !stopped &&
                    stopped.error().code == Code::failed_precondition && !profiler.start() &&
                    profiler.runs_in_parent()
                ? 0
                : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(profiler.runs_in_parent());
  ASSERT_TRUE(profiler.stop());
  const pid_t later = ::fork();
  if (later == 0) {
    ::_exit(profiler.stop() && watch.look().empty() ? 0 : 1);
  }
  ::waitpid(later, &status, 0);
  EXPECT_EQ(status, 0) << "nothing ran when it forked";
}

// Records with a ring, changes its file meanwhile by `change`, and checks that this is told.
void ring_file_is_lost_by(ProfilerOptions options, const Registry& registry,
                          const std::function<void(const std::string& ring)>& change) {
  Profiler profiler(registry, options);
  TroubleWatch watch(profiler);
  ASSERT_TRUE(profiler.start());
  EXPECT_TRUE(watch.look().empty());
  change(options.ring_file);
  std::vector<Trouble> news;
  while (news.empty()) {
    std::this_thread::sleep_for(milliseconds(5));
    news = watch.look();
  }
  ASSERT_EQ(news.size(), 1U);
  EXPECT_NE(news[0].text.find("run.ring was removed, renamed or replaced"), std::string::npos)
      << news[0].text;
  EXPECT_TRUE(profiler.stop()) << "the recording itself is whole";
}

// Before, nobody was told until the program was killed and there was no ring.
TEST_F(ProfilerTest, ARingFileThatIsRemovedIsTold) {
  ProfilerOptions with_ring = options();
  with_ring.ring_file = in_folder("run.ring");
  ring_file_is_lost_by(with_ring, registry_,
                       [](const std::string& ring) { std::filesystem::remove(ring); });
}

// Before, only a removed file was told, and stop() removed what had taken the name.
TEST_F(ProfilerTest, ARingFileThatIsRenamedIsTold) {
  ProfilerOptions with_ring = options();
  with_ring.ring_file = in_folder("run.ring");
  ring_file_is_lost_by(with_ring, registry_, [](const std::string& ring) {
    std::filesystem::rename(ring, ring + ".old");
    std::ofstream(ring) << "of another program";
  });
  EXPECT_TRUE(std::filesystem::exists(with_ring.ring_file));
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

// A sink that stops in a write when it is told to, until it is released.
class StandingSink : public KeepingSink {
 public:
  Result<void> close(const ProfilerStats& stats) override {
    closing.set_value();
    may_go_on.get_future().wait();
    return KeepingSink::close(stats);
  }
  std::promise<void> closing;
  std::promise<void> may_go_on;
};

TEST_F(ProfilerTest, NewestRowsDidNotReturnWhileTheSinkWasClosed) {
  auto sink = std::make_shared<StandingSink>();
  ProfilerOptions standing = options();
  standing.sink = sink;
  Profiler profiler(registry_, standing);
  ASSERT_TRUE(profiler.start());
  std::thread stopper([&] { EXPECT_TRUE(profiler.stop()); });
  sink->closing.get_future().wait();
  std::promise<void> looked;
  std::thread looker([&] {
    EXPECT_TRUE(profiler.newest_rows(10).empty());
    EXPECT_TRUE(profiler.warnings().empty());
    EXPECT_TRUE(profiler.last_sink_error().empty());
    looked.set_value();
  });
  EXPECT_EQ(looked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  sink->may_go_on.set_value();
  looker.join();
  stopper.join();
}

// The same, while stop() waits for a sink that is slow to write the last rows.
TEST_F(ProfilerTest, NewestRowsDidNotReturnWhileTheLastRowsWereWritten) {
  std::promise<void> writing;
  std::promise<void> may_go_on;
  sink_->on_write = [&, first = true]() mutable -> Result<void> {
    if (std::exchange(first, false)) {
      writing.set_value();
      may_go_on.get_future().wait();
    }
    return {};
  };
  ProfilerOptions quick = options();
  quick.flush = milliseconds(1);
  Profiler profiler(registry_, quick);
  ASSERT_TRUE(profiler.start());
  writing.get_future().wait();
  std::thread stopper([&] { EXPECT_TRUE(profiler.stop()); });
  std::promise<void> looked;
  std::thread looker([&] {
    // The stop has begun when the recording's time no longer increases.
    std::uint64_t before_ns = 0;
    do {
      before_ns = profiler.stats().duration_ns;
    } while (profiler.stats().duration_ns != before_ns);
    EXPECT_FALSE(profiler.newest_rows(10).empty());
    looked.set_value();
  });
  EXPECT_EQ(looked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  may_go_on.set_value();
  looker.join();
  stopper.join();
}

TEST_F(ProfilerTest, StopDoesNotWaitForADistantDeadline) {
  ProfilerOptions slow = options();
  slow.interval = std::chrono::hours(1);
  Profiler profiler(registry_, slow);
  ASSERT_TRUE(profiler.start());
  ASSERT_TRUE(profiler.stop());       // if this hangs, ctest ends the test
  EXPECT_EQ(sink_->kept.size(), 2U);  // the first and the last row
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
  EXPECT_NE(warnings[0].find("an interval of 10 µs is too short"), std::string::npos);
  EXPECT_NE(warnings[1].find("not pinned to CPU 1023"), std::string::npos);
  while (profiler.stats().missed_late == 0) {  // the first warning predicts missed ticks
    std::this_thread::yield();
  }
  ASSERT_TRUE(profiler.stop());
}

// The value of a field in a thread's /proc/PID/task/TID/stat. Fields are numbered as in proc(5).
long stat_field(const std::string& line, int number) {
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= number; ++i) {
    fields >> field;
  }
  return std::stol(field);
}

std::string stat_of_collector() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const Result<std::string> stat = read_file(task.path().string() + "/stat");
    if (stat && stat->find("(kymo-collector)") != std::string::npos) {
      return *stat;
    }
  }
  return {};
}

constexpr int kPolicyField = 41;
constexpr int kPriorityField = 40;
constexpr int kNiceField = 19;

bool realtime_is_allowed() {
  bool allowed = false;
  std::thread([&] {
    sched_param lowest{};
    lowest.sched_priority = 1;
    allowed = ::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
  }).join();
  return allowed;
}

// A callback of a metric starts a child, on the collector's own thread.
TEST_F(ProfilerTest, NothingInheritsTheCollectorsPriority) {
  if (!realtime_is_allowed()) {
    GTEST_SKIP() << "no real-time priority here";
  }
  std::promise<int> forked;
  ASSERT_TRUE(registry_.callback(
      {"forks", "help", Kind::gauge, Unit::count, {}},
      [&, done = false]() mutable -> std::uint64_t {
        if (::sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK) && !done) {
          done = true;
          const pid_t child = ::fork();
          if (child == 0) {
            ::_exit(::sched_getscheduler(0) == SCHED_OTHER && ::getpriority(PRIO_PROCESS, 0) >= 0
                        ? 0
                        : 1);
          }
          int status = 0;
          ::waitpid(child, &status, 0);
          forked.set_value(status);
        }
        return 0;
      }));
  ProfilerOptions first = options();
  first.realtime_priority = 1;
  Profiler profiler(registry_, first);
  ASSERT_TRUE(profiler.start());
  const std::string stat = stat_of_collector();
  EXPECT_EQ(stat_field(stat, kPolicyField), SCHED_FIFO);
  EXPECT_EQ(stat_field(stat, kPriorityField), 1);
  EXPECT_EQ(forked.get_future().get(), 0) << "the child must not inherit the priority";
  ASSERT_TRUE(profiler.stop());
  EXPECT_TRUE(profiler.warnings().empty());
}

TEST_F(ProfilerTest, ACollectorThatUsesTooMuchGivesItsPriorityUpAndSaysSo) {
  if (!realtime_is_allowed()) {
    GTEST_SKIP() << "no real-time priority here";
  }
  std::atomic<bool> was_realtime = false;
  ASSERT_TRUE(registry_.callback({"burns", "help", Kind::gauge, Unit::count, {}}, [&was_realtime] {
    if (::sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK)) {
      was_realtime = true;
    }
    const std::uint64_t end_ns = monotonic_ns() + 400'000;
    while (monotonic_ns() < end_ns) {
    }
    return 0ULL;
  }));
  ProfilerOptions first = options();
  first.realtime_priority = 1;
  first.realtime_max_share = 0.05;
  first.nice = -5;
  Profiler profiler(registry_, first);
  ASSERT_TRUE(profiler.start());
  while (profiler.warnings().empty()) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(was_realtime);
  ASSERT_EQ(profiler.warnings().size(), 1U);
  EXPECT_NE(profiler.warnings()[0].find("gave its real-time priority up: it used "),
            std::string::npos);
  EXPECT_NE(profiler.warnings()[0].find(" and 5 % are allowed"), std::string::npos);
  const std::string stat = stat_of_collector();
  EXPECT_EQ(stat_field(stat, kPolicyField), SCHED_OTHER);
  EXPECT_EQ(stat_field(stat, kNiceField), -5);
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
  // Each row counts those before it.
  std::istringstream last(tsv.back());
  std::uint64_t time = 0;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  last >> time >> steps >> rows;
  EXPECT_EQ(rows, tsv.size() - 2);
  EXPECT_EQ(content(in_folder("run.tsv")).size(), profiler.stats().bytes_written);
  EXPECT_NE(content(in_folder("run.meta.json")).find("\"state\": \"ended\""), std::string::npos);
  EXPECT_EQ(lines(in_folder("run.gaps.tsv")).front(), "Start (ns)\tEnd (ns)\tTicks\tCause");
}

TEST_F(ProfilerTest, StopDidNotSayHowManyRowsAFullDiskCost) {
  ProfilerOptions to_file;
  const std::string disk = in_folder("disk");
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=40k") != 0) {
    GTEST_SKIP() << "needs root";
  }
  to_file.sink = make_tsv_sink(disk + "/run.tsv");
  to_file.flush = milliseconds(5);
  Profiler profiler(registry_, to_file);
  ASSERT_TRUE(profiler.start());
  std::ofstream(disk + "/filler") << std::string(1 << 20, 'x');  // writes as much as fits
  while (profiler.stats().missed_sink_error == 0) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  const ProfilerStats stats = profiler.stats();
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_EQ(stopped.error().message,
            "the recording was not finished: cannot write " + disk +
                "/run.meta.json: No space left on device; the " +
                std::to_string(stats.rows_written) + " rows written so far are in " + disk +
                "/run.tsv: free space on its disk before you record again; the recording lacks " +
                std::to_string(stats.missed_sink_error) + " of " + std::to_string(stats.ticks_due) +
                " ticks: " + std::to_string(stats.missed_sink_error) +
                " rows could not be kept (cannot write " + disk +
                "/run.tsv: No space left on device)");
  EXPECT_FALSE(std::filesystem::exists(disk + "/run.meta.json.new"));
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

// Runs a profiler until it has some rows and has spun for this time. Returns the time spun
// according to its metadata, or 0 if the metadata has none.
std::uint64_t spun_ns(const Registry& registry, const ProfilerOptions& options,
                      std::uint64_t at_least_ns, const std::string& metadata) {
  Profiler profiler(registry, options);
  EXPECT_TRUE(profiler.start());
  while (profiler.stats().rows_captured < 50 || profiler.stats().spin_ns < at_least_ns) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(profiler.stop());
  const std::string text = read_file(metadata).value();
  constexpr std::string_view kKey = "\"spin_ns\": ";
  const std::size_t at = text.find(kKey);
  return at == text.npos ? 0 : std::stoull(text.substr(at + kKey.size()));
}

TEST_F(ProfilerTest, SpinningWithoutASleepBeforeWasNotCounted) {
  constexpr std::uint64_t kMillisecondNs = 1'000'000;
  const auto spun = [&](const char* name, Pace pace, double share, int interval_us,
                        std::uint64_t at_least_ns) {
    ProfilerOptions options;
    options.sink = make_tsv_sink(in_folder(std::string(name) + ".tsv"));
    options.pace = pace;
    options.max_spin_share = share;
    options.interval = std::chrono::microseconds(interval_us);
    return spun_ns(registry_, options, at_least_ns, in_folder(std::string(name) + ".meta.json"));
  };
  EXPECT_GE(spun("whole_share", Pace::precise, 1, 100, kMillisecondNs), kMillisecondNs);
  EXPECT_GE(spun("too_short_to_sleep", Pace::thrifty, 0, 40, kMillisecondNs), kMillisecondNs);
  EXPECT_GE(spun("short", Pace::thrifty, 0, 100, 1), 1U);
  EXPECT_EQ(spun("sleeps", Pace::thrifty, 0, 1000, 0), 0U);
}

// Below 200 us, the collector spins more than such an option permits.
TEST_F(ProfilerTest, AMaxSpinShareThatCannotHoldIsAWarning) {
  const auto warned = [&](Pace pace, double share, int interval_us) {
    ProfilerOptions options;
    options.pace = pace;
    options.max_spin_share = share;
    options.interval = std::chrono::microseconds(interval_us);
    options.sink = std::make_shared<KeepingSink>();
    Profiler profiler(registry_, options);
    EXPECT_TRUE(profiler.start());
    const std::vector<std::string> warnings = profiler.warnings();
    EXPECT_TRUE(profiler.stop());
    return warnings.empty() ? "" : warnings.front();
  };
  EXPECT_EQ(warned(Pace::precise, 0.15, 1000), "");
  EXPECT_EQ(warned(Pace::precise, 0.6, 100), "");
  EXPECT_EQ(warned(Pace::precise, 0.15, 100),
            "an interval of 100 µs is too short for the max spin share: the collector may spin up "
            "to 50 % of the time");
  EXPECT_EQ(warned(Pace::precise, 0.1, 40),
            "an interval of 40 µs is too short for the max spin share: the collector may spin up "
            "to 100 % of the time");
  EXPECT_EQ(warned(Pace::thrifty, 0.1, 40), "");
}

}  // namespace
}  // namespace kymo
