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

// The width of a bucket is at most 1/per_doubling of its values, so this is a bound on the error of
// a quantile.
static_assert(buckets_between(1000, 5000).first == 512 && buckets_between(1000, 5000).last == 8192);
static_assert(buckets_in_ns().first == 512 && buckets_in_ns().last == 1ULL << 34U);
static_assert(buckets_in_us().first == 4 && buckets_in_us().last == 1ULL << 24U);
static_assert(buckets_in_bytes().first == 64 && buckets_in_bytes().last == 1ULL << 30U);

TEST(Histogram, BucketsForAnyRangeAreOnesThatTheRegistryTakes) {
  Registry registry;
  int number = 0;
  const auto taken = [&](const HistogramBuckets& buckets) {
    const Metric metric{
        "n" + std::to_string(number++) + "_ns", "help", Kind::counter, Unit::nanoseconds, {}};
    const auto histogram = registry.histogram(metric, buckets);
    return histogram ? std::string() : histogram.error().message;
  };
  using std::chrono::hours;
  using std::chrono::nanoseconds;
  for (const HistogramBuckets& buckets :
       {buckets_between(0, 0), buckets_between(5, 5), buckets_between(5, 6),
        buckets_between(1, UINT64_MAX, 1), buckets_between(UINT64_MAX, UINT64_MAX, 16),
        buckets_in_ns(nanoseconds(-5), nanoseconds(-9)), buckets_in_ns(nanoseconds(0), hours(24)),
        buckets_in_us(), buckets_in_bytes()}) {
    EXPECT_EQ(taken(buckets), "") << buckets.first << ' ' << buckets.last;
    EXPECT_GE(buckets.last, 2 * buckets.first);
  }
  EXPECT_NE(taken(buckets_between(1, 100, 3)), "") << "three to a doubling";
  // Before, these were accepted.
  for (const HistogramBuckets& swapped :
       {buckets_between(9, 3), buckets_between(5, 4), buckets_between(2, 1, 1),
        buckets_in_us(std::chrono::seconds(10), std::chrono::microseconds(1))}) {
    EXPECT_NE(taken(swapped).find("swapped"), std::string::npos) << swapped.first;
  }
}

// Before, all values above 1.05 ms or 1 MiB were in one bucket.
TEST(Histogram, TheDefaultBucketsFitTheUnit) {
  Registry registry;
  const auto bounds = [&](const std::string& name, Unit unit) {
    EXPECT_TRUE(registry.histogram({name, "help", Kind::counter, unit, {}}));
    return registry.sampler({name}).value()->columns().front().metric->bounds;
  };
  EXPECT_EQ(bounds("a_ns", Unit::nanoseconds).back(), 1ULL << 34U);
  EXPECT_EQ(bounds("b_bytes", Unit::bytes).back(), 1ULL << 30U);
  EXPECT_EQ(bounds("c_us", Unit::microseconds).back(), 1ULL << 24U);
  EXPECT_EQ(bounds("c2_us", Unit::microseconds).size(),
            bounds("a2_ns", Unit::nanoseconds).size() - 12)
      << "as fine; its values begin at 4 us";
  EXPECT_EQ(bounds("d", Unit::count).back(), 1ULL << 20U);
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

// Before, a name of 59 to 64 characters was taken, although no metric may be called as its column NAME_count.
TEST(Histogram, RefusesANameThatIsTooLongForItsColumns) {
  Registry registry;
  const auto histogram = [&](std::size_t length) {
    return registry.histogram({std::string(length, 'a'), "", Kind::counter, Unit::count, {}});
  };
  EXPECT_TRUE(histogram(58).ok());
  for (const std::size_t length : {59U, 64U, 70U}) {
    const auto refused = histogram(length);
    ASSERT_FALSE(refused.ok()) << length;
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
    EXPECT_EQ(
        refused.error().message,
        "metric '" + std::string(length, 'a') +
            "': the name of a histogram has at most 58 characters, because the name of its column "
            "NAME_count has at most 64; this one has " +
            std::to_string(length));
  }
}

}  // namespace
}  // namespace kymo
