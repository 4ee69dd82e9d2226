#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/sanitizers.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using Values = std::vector<std::uint64_t>;

// The rows in which a counter has one value: the first, and the one behind the last.
struct Rows {
  std::size_t begin = 0;
  std::size_t end = 0;
};

Rows rows_of(const Values& counter, std::uint64_t value) {
  const auto [first, last] = std::equal_range(counter.begin(), counter.end(), value);
  return {static_cast<std::size_t>(first - counter.begin()),
          static_cast<std::size_t>(last - counter.begin())};
}

// The longest time from the first to the last row of one value, those of `but` aside.
std::uint64_t longest_standstill(const Values& time, const Values& counter, Rows but) {
  std::uint64_t longest = 0;
  for (Rows rows{}; rows.begin < counter.size(); rows.begin = rows.end) {
    rows.end = rows_of(counter, counter[rows.begin]).end;
    if (rows.begin != but.begin) {
      longest = std::max(longest, time[rows.end - 1] - time[rows.begin]);
    }
  }
  return longest;
}

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
                    "--duration", KYMO_SANITIZER ? "12" : "4", "--output", recording});
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
  // Nothing is counted from the freeze on until it goes on.
  const Rows frozen = rows_of(ticks, ticks[static_cast<std::size_t>(first - stopped.begin())]);
  ASSERT_GT(frozen.begin, 0U);
  ASSERT_LT(frozen.end, ticks.size()) << "it never counted on";
  EXPECT_GE(frozen.end - frozen.begin, 2U) << "rows are taken while it is frozen";
  const auto& time = columns.at("Time (ns)");
  const std::uint64_t at_least = time[frozen.end - 1] - time[frozen.begin];
  const std::uint64_t at_most = time[frozen.end] - time[frozen.begin - 1];
  const std::uint64_t criu = dump["stats"]["frozen_time_us"].get<std::uint64_t>() * 1000;
  const std::uint64_t freezing = dump["stats"]["freezing_time_us"].get<std::uint64_t>() * 1000;
  // The same process on the same machine, when nobody dumps it: how long it may wait for a CPU.
  const std::uint64_t otherwise = longest_standstill(time, ticks, frozen);
  EXPECT_GE(at_most + 1'000'000, criu) << "it cannot have counted while CRIU held it";
  EXPECT_LE(at_least, criu + freezing + 3 * otherwise + 20'000'000)
      << "by CRIU " << criu << ", at other times " << otherwise;
}

}  // namespace
}  // namespace kymo::test
