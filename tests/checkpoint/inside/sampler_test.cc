#include "checkpoint/inside/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>

#include "checkpoint/inside/sources.h"
#include "support/temporary_directory.h"

namespace kymo::inside {
namespace {

// A source with two columns. It counts how often it is read.
class Counting : public Source {
 public:
  explicit Counting(const std::string& name = "a", unsigned every = 1)
      : every_(every),
        columns_{{name + "_count", "", Kind::counter, Unit::count, {}, {}},
                 {name + "_b", "", Kind::gauge, Unit::count, {}, {}}} {}
  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }
  [[nodiscard]] unsigned every() const override { return every_; }
  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    values[0] = 1000 + ++reads_;
    values[1] = 7;
  }

 private:
  std::uint64_t reads_ = 0;
  const unsigned every_;
  const std::vector<Metric> columns_;
};

// The idle time of /proc/stat goes back now and then (proc(5)). A recording of a request then had a
// counter that went back, which the report took for a number below zero.
TEST(Sampler, ACounterOfTheKernelThatGoesBackStaysWhereItWas) {
  const test::TemporaryDirectory proc;
  const auto idle = [&](int ticks) {
    std::ofstream(proc.path() + "/stat")
        << ("cpu 100 20 300 " + std::to_string(ticks) + " 50 6 7 80 9 10\n");
  };
  idle(4000);
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(make_machine_source(proc.path()));
  Sampler sampler(std::move(sources));
  std::size_t column = 0;
  while (sampler.columns()[column].name != "machine_idle_ns") ++column;
  std::mutex mutex;
  std::vector<std::uint64_t> seen;
  const auto last = [&] {
    const std::lock_guard lock(mutex);
    return seen.empty() ? 0 : seen.back();
  };
  sampler.start(std::chrono::milliseconds(1), [&](auto values) {
    const std::lock_guard lock(mutex);
    seen.push_back(values[column]);
  });
  const auto tick_ns =
      std::uint64_t{1'000'000'000} / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  idle(4100);
  EXPECT_TRUE(test::eventually([&] { return last() == 100 * tick_ns; }));
  idle(4090);
  const auto readings = [&] {
    const std::lock_guard lock(mutex);
    return seen.size();
  };
  const std::size_t before = readings();
  EXPECT_TRUE(test::eventually([&] { return readings() > before + 25; }));
  idle(4200);
  EXPECT_TRUE(test::eventually([&] { return last() == 200 * tick_ns; }));
  sampler.stop();
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Sampler, CountersBeginAtZeroAndGaugesAsTheyAre) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<Counting>());
  Sampler sampler(std::move(sources));
  EXPECT_EQ(sampler.values()[0], 0U);
  EXPECT_EQ(sampler.values()[1], 7U);
  std::vector<std::uint64_t> last;
  std::atomic<int> looks{0};
  sampler.start(std::chrono::milliseconds(1), [&](auto values) {
    last.assign(values.begin(), values.end());
    ++looks;
  });
  EXPECT_TRUE(test::eventually([&] { return looks > 12; }));
  sampler.stop();
  ASSERT_EQ(last.size(), 3U);
  EXPECT_GT(last[0], 10U) << "the source is read by a thread of its own";
  EXPECT_EQ(last[0] + 1, sampler.readings());
  EXPECT_GT(sampler.cpu_ns(), 0U);
}

// A recording had 25 s/s of CPU time on two CPUs in the rows in which a source was read after nine in which it was not.
TEST(Sampler, SaysWhenEachSourceWasRead) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<Counting>("often", 1));
  sources.push_back(std::make_unique<Counting>("seldom", 5));
  Sampler sampler(std::move(sources));
  ASSERT_EQ(sampler.ages(), 4U);
  EXPECT_EQ(sampler.columns()[4].name, "profiler_often_age_ns");
  EXPECT_EQ(sampler.columns()[5].name, "profiler_seldom_age_ns");
  std::mutex mutex;
  std::vector<std::vector<std::uint64_t>> looks{sampler.values()};
  sampler.start(std::chrono::milliseconds(1), [&](auto values) {
    const std::lock_guard lock(mutex);
    looks.emplace_back(values.begin(), values.end());
  });
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return looks.size() > 20;
  }));
  sampler.stop();
  EXPECT_EQ(looks.back()[4], UINT64_MAX);
  EXPECT_EQ(looks.back()[5], UINT64_MAX);
  looks.pop_back();
  for (std::size_t i = 1; i < looks.size(); ++i) {
    EXPECT_EQ(looks[i][0], i);
    EXPECT_EQ(looks[i][2], i / 5);
    EXPECT_GT(looks[i][4], looks[i - 1][4]);
    EXPECT_EQ(looks[i][5] > looks[i - 1][5], i % 5 == 0) << i;
  }
}

}  // namespace
}  // namespace kymo::inside
