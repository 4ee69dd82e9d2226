#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kymo/registry.h"

namespace kymo {
namespace {

// Threads start, add to two counters, and exit. A reader checks that no value ever decreases, and
// that the sums at the end are exact.
TEST(CounterStress, NoReadEverFallsAndNothingIsLost) {
  Registry registry;
  const Counter a = registry.counter({"a", "help", Kind::counter, Unit::count, {}}).value();
  const Counter b = registry.counter({"b", "help", Kind::counter, Unit::count, {}}).value();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    const auto sampler = registry.sampler({}).value();
    std::vector<std::uint64_t> last(2);
    std::vector<std::uint64_t> now(2);
    while (!done.load(std::memory_order_acquire)) {
      sampler->read(now.data());
      ASSERT_GE(now[0], last[0]);
      ASSERT_GE(now[1], last[1]);
      last = now;
    }
  });
  constexpr int kGenerations = 200;
  constexpr int kAdds = 2000;
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 3; ++lane) {
    lanes.emplace_back([&] {
      for (int generation = 0; generation < kGenerations; ++generation) {
        std::thread([&] {
          for (int i = 0; i < kAdds; ++i) {
            a.add(1);
            b.add(2);
          }
        }).join();
      }
    });
  }
  for (std::thread& lane : lanes) {
    lane.join();
  }
  done.store(true, std::memory_order_release);
  reader.join();
  std::vector<std::uint64_t> values(2);
  registry.sampler({}).value()->read(values.data());
  EXPECT_EQ(values[0], 3ULL * kGenerations * kAdds);
  EXPECT_EQ(values[1], 6ULL * kGenerations * kAdds);
}

}  // namespace
}  // namespace kymo
