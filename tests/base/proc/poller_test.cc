#include "base/proc/poller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/clock.h"

namespace kymo::probe {
namespace {

using std::chrono::milliseconds;

// Waits for a reading for which `is_it` is true, and returns it.
template <class Condition>
Poller::Reading wait_for(Poller& poller, Condition is_it) {
  Poller::Reading reading = poller.take();
  const std::uint64_t give_up_ns = monotonic_ns() + 30'000'000'000;
  while (!is_it(reading) && monotonic_ns() < give_up_ns) {
    std::this_thread::yield();
    reading = poller.take();
  }
  return reading;
}

TEST(Poller, HasAReadingFromItsStartAndTheLastOneAfterItsStop) {
  std::uint64_t number = 41;
  Poller poller(1, std::chrono::hours(1), [&](std::uint64_t* words) { words[0] = number; });
  EXPECT_EQ(poller.take().at_ns, 0U);
  const std::uint64_t before_ns = monotonic_ns();
  poller.start();
  EXPECT_EQ(poller.take().words[0], 41U);
  EXPECT_GE(poller.take().at_ns, before_ns);
  EXPECT_LE(poller.take().at_ns, monotonic_ns());
  number = 42;
  poller.stop();
  EXPECT_EQ(poller.take().words[0], 42U);
  poller.stop();
}

TEST(Poller, ReadsAgainAndAgain) {
  std::uint64_t number = 0;
  Poller poller(1, milliseconds(1), [&](std::uint64_t* words) { words[0] = ++number; });
  poller.start();
  const Poller::Reading reading =
      wait_for(poller, [](const Poller::Reading& r) { return r.words[0] >= 5; });
  EXPECT_GE(reading.words[0], 5U);
  poller.stop();
}

TEST(Poller, ASampleTookAsLongAsTheSlowFile) {
  std::promise<void> is_reading;
  std::promise<void> may_go_on;
  int readings = 0;
  Poller poller(1, milliseconds(1), [&](std::uint64_t* words) {
    words[0] = static_cast<std::uint64_t>(++readings);
    if (readings == 2) {
      is_reading.set_value();
      may_go_on.get_future().wait();
    }
  });
  poller.start();
  is_reading.get_future().wait();
  const Poller::Reading reading = poller.take();  // the file does not answer meanwhile
  EXPECT_EQ(reading.words[0], 1U);
  EXPECT_LT(reading.at_ns, monotonic_ns());
  may_go_on.set_value();
  EXPECT_GE(wait_for(poller, [](const Poller::Reading& r) { return r.words[0] >= 2; }).words[0],
            2U);
  poller.stop();
}

// The reader must see only complete readings, and never an older one, while both threads run as
// fast as they can.
TEST(Poller, ARacingTakerNeverSeesHalfAReading) {
  constexpr std::size_t kWords = 16;
  std::uint64_t number = 0;
  Poller poller(kWords, std::chrono::nanoseconds(1), [&](std::uint64_t* words) {
    ++number;
    for (std::size_t i = 0; i < kWords; ++i) {
      words[i] = number * (i + 1);
    }
  });
  poller.start();
  std::uint64_t last = 0;
  std::size_t seen = 0;
  const std::uint64_t give_up_ns = monotonic_ns() + 60'000'000'000;
  while (seen < 200 && monotonic_ns() < give_up_ns) {
    const Poller::Reading reading = poller.take();
    for (std::size_t i = 0; i < kWords; ++i) {
      ASSERT_EQ(reading.words[i], reading.words[0] * (i + 1));
    }
    ASSERT_GE(reading.words[0], last);
    seen += reading.words[0] != last ? 1 : 0;
    last = reading.words[0];
  }
  EXPECT_EQ(seen, 200U);
  poller.stop();
}

}  // namespace
}  // namespace kymo::probe
