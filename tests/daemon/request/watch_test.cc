#include "daemon/request/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace kymo::daemon {
namespace {

class WatchTest : public testing::Test {
 protected:
  Result<void> watch_into(std::vector<v1::Progress>& seen, const v1::WatchRequest& request) {
    return watch(board_, request,
                 {[&](const v1::Progress& progress) {
                    seen.push_back(progress);
                    return true;
                  },
                  [] { return false; }});
  }

  ProgressSums sums_;
  ProgressBoard board_{sums_};
};

v1::WatchRequest of_job(const std::string& name) {
  v1::WatchRequest request;
  request.set_job(name);
  request.set_updates_per_second(1000);
  return request;
}

TEST_F(WatchTest, EndsWithTheOutcomeOfWhatItWatches) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->set_target(7, "web");
  const auto other = board_.begin(v1::Progress::DUMP, "").value();
  other->set_target(8, "db");
  std::vector<v1::Progress> seen;
  std::atomic<bool> shown = false;
  auto watched = std::async(std::launch::async, [&] {
    return watch(board_, of_job("web"),
                 {[&](const v1::Progress& progress) {
                    seen.push_back(progress);
                    shown = true;
                    return true;
                  },
                  [] { return false; }});
  });
  while (!shown) std::this_thread::yield();
  board_.end(dump, Error{Code::aborted, "no room"});
  ASSERT_TRUE(watched.get().ok());
  ASSERT_GE(seen.size(), 2U);
  EXPECT_EQ(seen.front().state(), v1::Progress::RUNNING);
  EXPECT_EQ(seen.back().state(), v1::Progress::FAILED);
  EXPECT_EQ(seen.back().error(), "no room");
  for (const v1::Progress& progress : seen) EXPECT_EQ(progress.job(), "web");
  board_.end(other, {});
}

TEST_F(WatchTest, WaitsForARequestThatHasNotBegunAndFindsOneThatHasEnded) {
  v1::WatchRequest request;
  request.set_request_id("mine");
  request.set_wait(true);
  std::vector<v1::Progress> seen;
  auto watched = std::async(std::launch::async, [&] { return watch_into(seen, request); });
  // The watcher may or may not be waiting already.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto dump = board_.begin(v1::Progress::DUMP, "mine").value();
  board_.end(dump, {});
  ASSERT_TRUE(watched.get().ok());
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().state(), v1::Progress::SUCCEEDED);
  seen.clear();
  request.set_wait(false);
  ASSERT_TRUE(watch_into(seen, request).ok());
  ASSERT_EQ(seen.size(), 1U);
}

TEST_F(WatchTest, ARequestThatBeginsAndEndsBetweenTwoLooksIsNotWaitedForForEver) {
  const auto earlier = board_.begin(v1::Progress::DUMP, "").value();
  earlier->set_target(6, "web");
  board_.end(earlier, {});  // ended before the watch began, so the watch must not report it
  v1::WatchRequest request = of_job("web");
  request.set_wait(true);
  std::vector<v1::Progress> seen;
  int looks = 0;
  // Runs on the watcher's own thread between two looks, so the watcher cannot see the request while
  // it runs.
  const auto between = [&] {
    if (++looks == 1) {
      const auto dump = board_.begin(v1::Progress::DUMP, "short").value();
      dump->set_target(7, "web");
      board_.end(dump, {});
    }
    return looks > 10;  // ends the test if the watch would wait for ever
  };
  const auto note = [&](const v1::Progress& progress) {
    seen.push_back(progress);
    return true;
  };
  ASSERT_TRUE(watch(board_, request, {note, between}).ok());
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen.front().request_id(), "short");
  EXPECT_EQ(seen.front().state(), v1::Progress::SUCCEEDED);
  EXPECT_LT(looks, 10);
}

TEST_F(WatchTest, WhereNothingRunsThatIsSaid) {
  std::vector<v1::Progress> seen;
  EXPECT_EQ(watch_into(seen, of_job("nobody")).error().code, Code::not_found);
  EXPECT_TRUE(watch_into(seen, {}).ok());  // without a filter, a watch of nothing succeeds
  v1::WatchRequest hasty;
  hasty.set_updates_per_second(1001);
  EXPECT_EQ(watch_into(seen, hasty).error().code, Code::invalid_argument);
  EXPECT_TRUE(seen.empty());
}

TEST_F(WatchTest, WatchersBeyondTheLimitAreRefusedAndStalledOnesHoldNobodyUp) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->set_target(7, "web");
  std::atomic<bool> stalled = true;
  std::atomic<int> entered = 0;
  std::vector<std::thread> watchers;
  for (int i = 0; i < ProgressBoard::kMaxWatchers; ++i) {
    watchers.emplace_back([&] {
      static_cast<void>(watch(board_, of_job("web"),
                              {[&](const v1::Progress&) {
                                 ++entered;
                                 stalled.wait(true);  // a reader that does not go on
                                 return true;
                               },
                               [] { return false; }}));
    });
  }
  while (entered < ProgressBoard::kMaxWatchers) std::this_thread::yield();
  std::vector<v1::Progress> seen;
  EXPECT_EQ(watch_into(seen, of_job("web")).error().code, Code::resource_exhausted);
  // Returns at once: a request waits for no watcher.
  dump->moved(4096, 4096, v1::Progress::PASSIVE);
  board_.end(dump, {});
  stalled = false;
  stalled.notify_all();
  for (std::thread& watcher : watchers) watcher.join();
  // Not resource_exhausted: there is room for a watcher again.
  EXPECT_EQ(watch_into(seen, of_job("web")).error().code, Code::not_found);
}

TEST_F(WatchTest, EndsWhenItsReaderGoesOrTheDaemonStops) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->set_target(7, "web");
  EXPECT_TRUE(
      watch(board_, of_job("web"), {[](const v1::Progress&) { return true; }, [] { return true; }})
          .ok());
  v1::WatchRequest ever;
  ever.set_wait(true);
  std::vector<v1::Progress> seen;
  auto watched = std::async(std::launch::async, [&] { return watch_into(seen, ever); });
  board_.end(dump, {});
  board_.stop();
  EXPECT_EQ(watched.get().error().code, Code::unavailable);
}

// When kymod stops, gRPC cancels the calls that are left.
TEST_F(WatchTest, AReaderThatSeemsGoneBecauseTheDaemonStopsIsToldSo) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->set_target(7, "web");
  const auto stop = [&] {
    board_.stop();
    return true;
  };
  const auto waits = watch(board_, of_job("web"), {[](const v1::Progress&) { return true; }, stop});
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().code, Code::unavailable);
  const auto writes =
      watch(board_, of_job("web"), {[](const v1::Progress&) { return false; }, stop});
  ASSERT_FALSE(writes.ok());
  EXPECT_EQ(writes.error().code, Code::unavailable);
  board_.end(dump, {});
}

}  // namespace
}  // namespace kymo::daemon
