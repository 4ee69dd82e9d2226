// Commands that read recordings right after a dump, while kymod still writes the last recording.

#include <gtest/gtest.h>
#include <signal.h>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

TEST(FreshDiffTest, RightAfterADumpItsTimesAreNotTakenForNothing) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  for (const char* name : {"first", "second"}) {
    static_cast<void>(
        kymod.kymo_json({"dump", "process", "work", "--leave-running", "--dir", kymod.path(name)}));
  }
  // The recording gets CRIU's times at the end of the dump, a second before it is complete. So diff
  // waits for it.
  const Outcome diff = kymod.kymo({"diff", kymod.path("first"), kymod.path("second"), "--json"});
  ASSERT_EQ(diff.exit_code, 0) << diff.err;
  bool seen = false;
  const nlohmann::json recordings = nlohmann::json::parse(diff.out)["recordings"];
  EXPECT_EQ(recordings["notes"], nlohmann::json::array());
  for (const nlohmann::json& metric : recordings["metrics"]) {
    if (metric["name"] != "frozen_time_us") continue;
    seen = true;
    EXPECT_GT(metric["a"].get<double>(), 0) << metric;
    EXPECT_GT(metric["b"].get<double>(), 0) << metric;
  }
  EXPECT_TRUE(seen);
  const Outcome report = kymod.kymo({"report", kymod.path("second"), "--json"});
  EXPECT_EQ(nlohmann::json::parse(report.out)["recordings"][0]["finish"], "ended");
}

TEST(DiffTest, SaysWhyOneDumpHeldItsProcessLonger) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(4, "small"));
  static_cast<void>(kymod.churn(128, "large"));
  for (const char* name : {"small", "large"}) {
    static_cast<void>(
        kymod.kymo_json({"dump", "process", name, "--leave-running", "--dir", kymod.path(name)}));
  }
  const Outcome diff = kymod.kymo({"diff", kymod.path("small"), kymod.path("large")});
  EXPECT_EQ(diff.exit_code, 0) << diff.err;
  EXPECT_NE(diff.out.find("\nIn B the processes stood still for "), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find(" longer than in A ("), std::string::npos) << diff.out;
  // And the pages of a stack and a heap.
  EXPECT_NE(diff.out.find("\nB wrote 12"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find(" MiB of memory, A "), std::string::npos) << diff.out;
}

TEST(FreshDiffTest, ARecordingWhoseKymodWasKilledIsCutShortAndNotWaitedFor) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(4, "work");
  static_cast<void>(
      kymod.kymo_json({"dump", "process", "work", "--leave-running", "--dir", kymod.path("dump")}));
  ASSERT_NE(kymod.stop(SIGKILL), 0);
  // No kymod runs that would end the process.
  ASSERT_EQ(::kill(job["pid"].get<pid_t>(), SIGKILL), 0);
  const Outcome report = kymod.kymo({"report", kymod.path("dump")});
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.err, "");
  EXPECT_NE(report.out.find("quality     warning: cut short: its recorder"), std::string::npos)
      << report.out;
}

}  // namespace
}  // namespace kymo::test
