#include "base/busy_paths.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace kymo {
namespace {

TEST(BusyPathsTest, APathIsBusyUntilAllWorkThereHasEnded) {
  BusyPaths all;
  std::optional<BusyPaths::Work> one;
  std::optional<BusyPaths::Work> two;
  one.emplace(all, "/a");
  two.emplace(all, "/a");
  EXPECT_TRUE(all.busy("/a"));
  EXPECT_FALSE(all.busy("/b"));
  one.reset();
  EXPECT_TRUE(all.busy("/a"));
  all.wait("/a", std::chrono::milliseconds(1));
  two.reset();
  EXPECT_FALSE(all.busy("/a"));
  all.wait("/a");
}

TEST(BusyPathsTest, OneWhoWaitsGoesOnWhenTheWorkEnds) {
  BusyPaths all;
  std::optional<BusyPaths::Work> work;
  work.emplace(all, "/a");
  std::thread waits([&] { all.wait("/a"); });
  work.reset();
  waits.join();
}

}  // namespace
}  // namespace kymo
