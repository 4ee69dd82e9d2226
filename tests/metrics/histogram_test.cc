#include "kymo/histogram.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "kymo/registry.h"

namespace kymo {
namespace {

TEST(BucketIndex, PutsEachValueBetweenTheBoundsOfItsBucket) {
  for (const HistogramBuckets buckets :
       {HistogramBuckets{1, 1U << 20U, 1}, HistogramBuckets{64, 1U << 16U, 16},
        HistogramBuckets{4, 8, 2}, HistogramBuckets{1, std::uint64_t{1} << 63U, 1}}) {
    const detail::BucketIndex index(buckets);
    EXPECT_EQ(index.bound(0), buckets.first);
    EXPECT_EQ(index.bound(index.last() - 1), buckets.last);
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> values = {0, 1, 2, UINT64_MAX};
    for (std::uint32_t i = 0; i < index.last(); ++i) {
      values.insert(values.end(), {index.bound(i) - 1, index.bound(i), index.bound(i) + 1});
    }
    for (int i = 0; i < 10'000; ++i) {
      values.push_back(random() >> (random() % 64));
    }
    for (const std::uint64_t value : values) {
      const std::uint32_t found = index.of(value);
      ASSERT_LE(found, index.last());
      ASSERT_TRUE(found == index.last() || value <= index.bound(found)) << value;
      ASSERT_TRUE(found == 0 || value > index.bound(found - 1)) << value;
    }
  }
}

TEST(Histogram, CountsFromEveryThreadIntoItsColumns) {
  Registry registry;
  const Histogram wait =
      registry.histogram({"wait_us", "Waits", Kind::counter, Unit::microseconds, {}}, {1, 4, 1})
          .value();
  std::thread other([&] { wait.record(4); });
  other.join();
  for (const std::uint64_t value : {0U, 1U, 2U, 3U, 100U}) {
    wait.record(value);
  }
  const auto sampler = registry.sampler({"wait_us"}).value();
  std::vector<std::string> names;
  for (const Column& column : sampler->columns()) {
    names.push_back(column.name);
    EXPECT_EQ(column.metric->unit, column.name == "wait_us_sum" ? Unit::microseconds : Unit::count);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"wait_us[0-1]", "wait_us[2-2]", "wait_us[3-4]",
                                             "wait_us[5-inf]", "wait_us_sum", "wait_us_count"}));
  std::vector<std::uint64_t> row(names.size());
  sampler->read(row.data());
  EXPECT_EQ(row, (std::vector<std::uint64_t>{2, 1, 2, 1, 110, 6}));
}

TEST(Histogram, RefusesWhatCannotBe) {
  Registry registry;
  const Metric wait{"wait_us", "Waits", Kind::counter, Unit::microseconds, {}};
  const auto refusal = [&](const HistogramBuckets& buckets) {
    return registry.histogram(wait, buckets).error().message;
  };
  EXPECT_EQ(refusal({3, 8, 1}),
            "metric 'wait_us': its buckets' first = 3: allowed are powers of two");
  EXPECT_NE(refusal({8, 8, 1}).find("last above"), std::string::npos);
  EXPECT_NE(refusal({8, 64, 32}).find("1 to 16"), std::string::npos);
  ASSERT_TRUE(registry.counter({"wait_us_sum", "", Kind::counter, Unit::count, {}}));
  EXPECT_EQ(registry.histogram(wait).error().code, Code::already_exists);
}

}  // namespace
}  // namespace kymo
