#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// A dump that leaves its process running, seen from without by somebody who knows of no dump.
TEST(OutsideTest, AFrozenProgramIsSampledOn) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const std::string counters = kymod.path("counters");
  const nlohmann::json job = kymod.kymo_json(
      {"run", "process", "--name", "counted", "--", PUBLISHER_PROGRAM, counters, "8"});
  ASSERT_TRUE(
      eventually([&] { return read_file(job["stdout_path"].get<std::string>()) == "ready\n"; }));
  const std::string recording = kymod.path("outside.tsv");
  Outcome recorded;
  std::thread recorder([&] {
    recorded = run({KYMO_PROGRAM, "record", "-p", std::to_string(job["pid"].get<int>()),
                    "--duration", "4", "--output", recording});
  });
  EXPECT_TRUE(eventually([&] { return read_file(recording).size() > 1000; }));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "counted", "--leave-running"});
  recorder.join();
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const auto columns = read_recording(recording);
  const auto& ticks = columns.at("ticks");
  const auto& stopped = columns.at("tree_stopped");
  EXPECT_EQ(columns.at("steps[down]").back(), 8000U);
  EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
  const auto first = std::find(stopped.begin(), stopped.end(), 1U);
  ASSERT_NE(first, stopped.end()) << "the freeze was not seen";
  // In between it is seen running now and then: what CRIU puts into it is.
  const auto last = std::find(stopped.rbegin(), stopped.rend(), 1U).base() - 1;
  ASSERT_NE(last, stopped.end() - 1) << "it never went on";
  const auto from = static_cast<std::size_t>(first - stopped.begin());
  const auto to = static_cast<std::size_t>(last - stopped.begin());
  EXPECT_EQ(ticks[from], ticks[to]) << "nothing is counted while it is frozen";
  EXPECT_GT(ticks.back(), ticks[to]) << "and it counts on afterwards";
  const auto& time = columns.at("Time (ns)");
  const std::uint64_t frozen_us = (time[to] - time[from]) / 1000;
  const auto said_us = dump["stats"]["frozen_time_us"].get<std::uint64_t>();
  RecordProperty("frozen_us_seen", static_cast<int>(frozen_us));
  EXPECT_GT(to, from) << "rows are taken while it is frozen";
  EXPECT_GE(frozen_us, said_us / 4) << "by CRIU: " << said_us;
  EXPECT_LE(frozen_us, said_us * 2 + 500'000) << "by CRIU: " << said_us;
}

}  // namespace
}  // namespace kymo::test
