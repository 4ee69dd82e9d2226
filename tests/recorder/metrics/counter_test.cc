#include "kymo/counter.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "kymo/registry.h"
#include "recorder/metrics/cells.h"

namespace kymo {
namespace {

Metric count_of(const std::string& name) {
  return {name, "help", Kind::counter, Unit::count, {}};
}

std::vector<std::uint64_t> read(const Registry& registry) {
  const auto sampler = registry.sampler({}).value();
  std::vector<std::uint64_t> values(sampler->columns().size());
  sampler->read(values.data());
  return values;
}

TEST(Counter, SumsWhatAllThreadsAdd) {
  Registry registry;
  const Counter counter = registry.counter(count_of("steps")).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([counter] {
      for (int i = 0; i < 10'000; ++i) {
        counter.add(3);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(read(registry), std::vector<std::uint64_t>{120'000});
}

TEST(Counter, TenThousandThreadsLoseNothingAndLeakNothing) {
  Registry registry;
  const Counter counter = registry.counter(count_of("steps")).value();
  counter.add();
  std::thread([counter] { counter.add(); }).join();
  const std::size_t blocks = detail::block_count();
  for (int t = 0; t < 10'000; ++t) {
    std::thread([counter] { counter.add(); }).join();
  }
  EXPECT_EQ(read(registry), std::vector<std::uint64_t>{10'002});
  EXPECT_EQ(detail::block_count(), blocks);
}

TEST(Counter, CountsInAThreadLocalDestructorThatRunsAfterItsOwn) {
  Registry registry;
  static Counter counter = registry.counter(count_of("steps")).value();
  counter = registry.counter(count_of("late_steps")).value();
  struct AddsAtExit {
    ~AddsAtExit() { counter.add(5); }
  };
  std::thread([] {
    // This object is constructed before the thread's first add. So it is destroyed after the thread
    // has handed its cells on.
    thread_local AddsAtExit late;
    static_cast<void>(&late);
    counter.add(1);
  }).join();
  EXPECT_EQ(read(registry), (std::vector<std::uint64_t>{0, 6}));
}

TEST(Counter, StartsAtZeroWhereAnEarlierRegistryCounted) {
  for (int round = 0; round < 3; ++round) {
    Registry registry;
    const Counter counter = registry.counter(count_of("steps")).value();
    EXPECT_EQ(read(registry), std::vector<std::uint64_t>{0});
    counter.add(41);
    EXPECT_EQ(read(registry), std::vector<std::uint64_t>{41});
  }
}

TEST(Counter, WrapsAtTwoToTheSixtyFour) {
  Registry registry;
  const Counter counter = registry.counter(count_of("steps")).value();
  counter.add(UINT64_MAX);
  counter.add(2);
  EXPECT_EQ(read(registry), std::vector<std::uint64_t>{1});
  counter.add(UINT64_MAX);  // the cell must be 0 again for other tests
}

}  // namespace
}  // namespace kymo
