#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kIntervalNs = 500'000;

std::uint64_t line_count_of(const std::string& path) {
  const std::string text = read_file(path);
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// The files that two successive kymods share.
class RingTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string ring() const { return folder_.path() + "/ring"; }
  [[nodiscard]] std::string log(int n) const {
    return folder_.path() + "/all-" + std::to_string(n) + ".tsv";
  }
  [[nodiscard]] std::vector<std::string> flags(int n) const {
    return {"--profiling-ring",
            ring(),
            "--profiling-metrics",
            "dumps,profiler_rows",
            "--profiling-metrics-log",
            log(n),
            "--profiling-metrics-rate-us",
            std::to_string(kIntervalNs / 1000)};
  }
  // Runs a kymod until some rows are in the file, while newer ones are only in the ring. Then kills
  // it.
  void record_and_kill(int n) const {
    Kymod kymod(flags(n));
    kymod.start();
    ASSERT_TRUE(fs::exists(ring()));
    ASSERT_TRUE(eventually([&] { return line_count_of(log(n)) > 1500; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a tenth of the time of a slot
    kymod.stop(SIGKILL);
  }

  TemporaryDirectory folder_;
};

// The tick with which a recording begins: that of its first row, or of the first missed tick before
// it.
std::uint64_t first_tick(const std::string& recording, std::uint64_t first_row_ns) {
  std::istringstream gaps(read_file(recording.substr(0, recording.size() - 4) + ".gaps.tsv"));
  std::string header;
  std::uint64_t start_ns = 0;
  if (std::getline(gaps, header) && gaps >> start_ns) {
    return std::min(start_ns, first_row_ns) / kIntervalNs;
  }
  return first_row_ns / kIntervalNs;
}

// Expects that each tick up to the last row is a row or listed as missed.
void expect_contiguous(const std::string& recording) {
  const auto columns = read_recording(recording);
  const std::vector<std::uint64_t>& time = columns.at("Time (ns)");
  EXPECT_TRUE(std::is_sorted(time.begin(), time.end()));
  EXPECT_EQ(std::adjacent_find(time.begin(), time.end()), time.end())
      << "a row is in the recording twice";
  const nlohmann::json metadata =
      nlohmann::json::parse(read_file(recording.substr(0, recording.size() - 4) + ".meta.json"));
  EXPECT_EQ(metadata["state"], "recovered");
  const nlohmann::json& stats = metadata["stats"];
  EXPECT_EQ(stats["rows_written"].get<std::uint64_t>(), time.size());
  EXPECT_EQ(stats["ticks_due"].get<std::uint64_t>(), time.size() + stats.value("missed_late", 0U) +
                                                         stats.value("missed_ring_full", 0U) +
                                                         stats.value("missed_frozen", 0U));
  // The time of a row is the middle of its reads. If the row is late, this can be in the next tick.
  const std::uint64_t ticks = time.back() / kIntervalNs - first_tick(recording, time.front()) + 1;
  const auto due = stats["ticks_due"].get<std::uint64_t>();
  EXPECT_LE(due, ticks + 1);
  EXPECT_GE(due + 1, ticks);
}

TEST_F(RingTest, AKilledDaemonsRowsAreRecoveredAfterTheNextStart) {
  KYMO_NEEDS_CRIU();
  record_and_kill(1);
  const std::uint64_t written = line_count_of(log(1));
  {
    Kymod next(flags(2));
    next.start();
    const std::string said = next.log();
    EXPECT_NE(said.find("'kymo recover " + ring() + ".left-1'"), std::string::npos) << said;
    EXPECT_TRUE(fs::exists(ring()));

    const Outcome recovered = run({KYMO_PROGRAM, "recover", "--json", ring() + ".left-1"});
    ASSERT_EQ(recovered.exit_code, 0) << recovered.err;
    const nlohmann::json reply = nlohmann::json::parse(recovered.out);
    EXPECT_EQ(reply["output"], log(1));
    EXPECT_GT(reply["rows"].get<std::uint64_t>(), 0U);
    EXPECT_GE(line_count_of(log(1)), written);
    expect_contiguous(log(1));
    EXPECT_FALSE(fs::exists(ring() + ".left-1"));

    const Outcome in_use = run({KYMO_PROGRAM, "recover", ring()});
    EXPECT_EQ(in_use.exit_code, 1);
    EXPECT_NE(in_use.err.find("in use by process"), std::string::npos) << in_use.err;
  }
  EXPECT_FALSE(fs::exists(ring())) << "kymod must remove the ring when it stops";
}

TEST_F(RingTest, NoRingThatWasLeftIsEverOverwritten) {
  KYMO_NEEDS_CRIU();
  for (const int n : {1, 2, 3}) ASSERT_NO_FATAL_FAILURE(record_and_kill(n));
  for (const std::string& left : {ring() + ".left-1", ring() + ".left-2", ring()}) {
    const Outcome recovered = run({KYMO_PROGRAM, "recover", left});
    EXPECT_EQ(recovered.exit_code, 0) << recovered.err;
  }
  for (const int n : {1, 2, 3}) expect_contiguous(log(n));
}

TEST_F(RingTest, AFileThatIsNoRingIsLeftAlone) {
  KYMO_NEEDS_CRIU();
  const std::string precious = folder_.file("ring", "a letter");
  const Outcome refused =
      run({KYMOD_PROGRAM, "--profiling-ring", precious, "--socket", folder_.path() + "/s",
           "--state-dir", folder_.path() + "/d", "--criu", criu_path(), "--http", "127.0.0.1:0"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("kymod: --profiling-ring: " + precious + " is not a ring"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(read_file(precious), "a letter");
}

}  // namespace
}  // namespace kymo::test
