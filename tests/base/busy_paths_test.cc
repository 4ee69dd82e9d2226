#include "base/busy_paths.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace kymo {
namespace {

TEST(BusyPathsTest, OneWhoWaitsGoesOnWhenAllWorkThereHasEnded) {
  BusyPaths all;
  std::optional<BusyPaths::Work> one;
  std::optional<BusyPaths::Work> two;
  const BusyPaths::Work elsewhere(all, "/b");
  one.emplace(all, "/a");
  two.emplace(all, "/a");
  std::atomic<bool> ended = false;
  std::thread waits([&] {
    all.wait("/a");
    EXPECT_TRUE(ended);
  });
  one.reset();
  ended = true;
  two.reset();
  waits.join();
  all.wait("/a");
}

}  // namespace
}  // namespace kymo
