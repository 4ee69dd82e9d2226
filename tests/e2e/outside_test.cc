#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using Values = std::vector<std::uint64_t>;

// The range of rows in which a counter has one value. `end` is behind the last row.
struct Rows {
  std::size_t begin = 0;
  std::size_t end = 0;
};

Rows rows_of(const Values& counter, std::uint64_t value) {
  const auto [first, last] = std::equal_range(counter.begin(), counter.end(), value);
  return {static_cast<std::size_t>(first - counter.begin()),
          static_cast<std::size_t>(last - counter.begin())};
}

// The last whole row of a recording that is still being written, by column.
std::map<std::string, std::uint64_t> last_row_of(const std::string& recording) {
  const std::string text = read_file(recording);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return {};
  const std::size_t begin = text.rfind('\n', end - 1);
  if (begin == std::string::npos) return {};  // only the header was written so far
  std::istringstream names(text.substr(0, text.find('\n')));
  std::istringstream row(text.substr(begin + 1, end - begin - 1));
  std::map<std::string, std::uint64_t> values;
  for (std::string name; std::getline(names, name, '\t');) row >> values[name];
  return values;
}

// A dump that leaves its process running, recorded from outside by `kymo record`, which does not
// know about the dump.
TEST(OutsideTest, AFrozenProgramIsSampledOn) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  const std::string counters = kymod.path("counters");
  const nlohmann::json job = kymod.kymo_json(
      {"run", "process", "--name", "counted", "--", PUBLISHER_PROGRAM, counters, "8"});
  ASSERT_TRUE(
      eventually([&] { return read_file(job["stdout_path"].get<std::string>()) == "ready\n"; }));
  const std::string recording = kymod.path("outside.tsv");
  Outcome recorded;
  std::thread recorder([&] {
    recorded = run({KYMO_PROGRAM, "record", "-p", std::to_string(job["pid"].get<int>()), "--output",
                    recording});
  });
  EXPECT_TRUE(eventually([&] { return read_file(recording).size() > 1000; }));
  // CRIU is stopped here until the freeze was recorded. Later, the thread of the process runs
  // CRIU's code.
  criu.break_at("Dumping task (pid", SIGSTOP);
  nlohmann::json dump;
  std::thread client([&] {
    dump = kymod.kymo_json({"dump", "process", "counted", "--leave-running"});
  });
  const pid_t holder = criu.stopped();
  EXPECT_NE(holder, 0) << kymod.log();
  criu.mend();
  std::map<std::string, std::uint64_t> row;
  EXPECT_TRUE(eventually([&] { return (row = last_row_of(recording))["tree_stopped"] == 1; }));
  if (holder != 0) kill(holder, SIGCONT);
  client.join();
  const std::uint64_t held_at = row["ticks"];
  EXPECT_TRUE(eventually([&] { return last_row_of(recording)["ticks"] > held_at; }));
  kill(job["pid"].get<pid_t>(), SIGKILL);  // the end of the program ends the recording
  recorder.join();
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const auto columns = read_recording(recording);
  const auto& ticks = columns.at("ticks");
  const auto& stopped = columns.at("tree_stopped");
  EXPECT_EQ(columns.at("steps[down]").back(), 8000U);
  EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
  const auto first = std::find(stopped.begin(), stopped.end(), 1U);
  ASSERT_NE(first, stopped.end()) << "no row shows the freeze";
  // The counter must not change from the freeze until the process goes on.
  const Rows frozen = rows_of(ticks, ticks[static_cast<std::size_t>(first - stopped.begin())]);
  ASSERT_GT(frozen.begin, 0U);
  ASSERT_LT(frozen.end, ticks.size()) << "the program did not count after the dump";
  EXPECT_GE(frozen.end - frozen.begin, 2U) << "rows are taken while it is frozen";
  const auto& time = columns.at("Time (ns)");
  const std::uint64_t at_most = time[frozen.end] - time[frozen.begin - 1];
  const std::uint64_t by_criu = dump["stats"]["frozen_time_us"].get<std::uint64_t>() * 1000;
  // A row may be read late, as late as the machine is busy.
  EXPECT_GE(at_most + by_criu / 10, by_criu) << "the counter changed while CRIU held the program";
  EXPECT_EQ(columns.at("tree_stopped").back(), 0U);
}

}  // namespace
}  // namespace kymo::test
