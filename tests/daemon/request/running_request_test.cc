#include "daemon/request/running_request.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kymo::daemon {
namespace {

class RunningRequestTest : public testing::Test {
 protected:
  // Returns the gauge `phase` as /metrics shows it.
  std::uint64_t phase() {
    const auto sampler = metrics_->registry().sampler({"phase"}).value();
    std::uint64_t value = 0;
    sampler->read(&value);
    return value;
  }

  std::unique_ptr<Metrics> metrics_ = Metrics::make().value();
  ProgressSums sums_;
  ProgressBoard board_{sums_};
};

TEST_F(RunningRequestTest, AnExceptionDoesNotLeaveItRunning) {
  const auto progress = board_.begin(v1::Progress::DUMP, "mine").value();
  try {
    const RunningRequest running(board_, *metrics_, progress);
    EXPECT_EQ(board_.matching({}, board_.ended()).size(), 1U);
    EXPECT_EQ(phase(), 1U);
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(board_.matching({}, board_.ended()).empty());
  EXPECT_EQ(progress->view().state(), v1::Progress::FAILED);
  EXPECT_EQ(progress->view().error(), "kymod failed: its log says why");
  EXPECT_EQ(phase(), 0U);
  EXPECT_TRUE(board_.begin(v1::Progress::DUMP, "mine").ok());  // the id can be used again
}

TEST_F(RunningRequestTest, TheOutcomeThatItWasToldStays) {
  for (const bool good : {true, false}) {
    const auto progress = board_.begin(v1::Progress::RESTORE, "").value();
    {
      RunningRequest running(board_, *metrics_, progress);
      running.ended(good ? Result<void>() : Error{Code::aborted, "no room"});
      EXPECT_EQ(phase(), 0U);
      // The record of the request is not written yet.
      EXPECT_EQ(progress->view().state(), v1::Progress::RUNNING);
    }
    EXPECT_EQ(progress->view().state(), good ? v1::Progress::SUCCEEDED : v1::Progress::FAILED);
    EXPECT_EQ(progress->view().error(), good ? "" : "no room");
    EXPECT_EQ(phase(), 0U);
  }
}

}  // namespace
}  // namespace kymo::daemon
