// The flight recorder writes nothing until it is asked for a snapshot. The snapshot then has the time before the request.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "programs.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> snapshots_of(const Kymod& kymod) {
  std::vector<std::string> found;
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(kymod.state() + "/snapshots", none_yet)) {
    const std::string path = entry.path();
    if (path.ends_with(".tsv") && !path.ends_with(".gaps.tsv")) found.push_back(path);
  }
  return found;
}

std::uint64_t bytes_written_by(pid_t pid) {
  std::ifstream io("/proc/" + std::to_string(pid) + "/io");
  std::string key;
  for (std::uint64_t value = 0; io >> key >> value;) {
    if (key == "write_bytes:") return value;
  }
  ADD_FAILURE() << "no write_bytes in /proc/" << pid << "/io";
  return 0;
}

TEST(SnapshotTest, NothingIsWrittenUntilASnapshotIsAskedForAndThenThePastIsThere) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--profiling-keep", "4s"});
  kymod.start();
  // kymod must write nothing for two seconds. On a busy machine it may write a line to its log, so the test tries again.
  EXPECT_TRUE(eventually([&] {
    const std::uint64_t before = bytes_written_by(kymod.pid());
    std::this_thread::sleep_for(std::chrono::seconds(2));  // the two seconds that are tested
    return bytes_written_by(kymod.pid()) == before;
  })) << kymod.log();
  EXPECT_TRUE(snapshots_of(kymod).empty());
  ASSERT_TRUE(
      eventually([&] { return kymod.kymo_json({"recorder"})["reach_ns"] > 2'500'000'000; }));

  const nlohmann::json taken = kymod.kymo_json({"snapshot", "--before=2s", "--after=500ms"});
  const std::string recording = taken["recording"];
  EXPECT_EQ(snapshots_of(kymod), std::vector<std::string>{recording});
  const nlohmann::json metadata = ended_metadata(recording);
  EXPECT_EQ(metadata["about"]["reason"], "request");
  EXPECT_EQ(metadata["marks"][0]["name"], "snapshot");
  EXPECT_NEAR(metadata["marks"][0]["at_ns"].get<double>(), 2e9, 2e6);
  EXPECT_FALSE(read_recording(recording).at("Time (ns)").empty());
  // Each tick of the 2.5 s is a row or was counted as missed.
  EXPECT_NEAR(metadata["stats"]["ticks_due"].get<double>(), 2500, 10);

  const std::string elsewhere = kymod.folder().folder("elsewhere");
  const nlohmann::json other = kymod.kymo_json({"snapshot", "--after=0", "--dir", elsewhere});
  EXPECT_EQ(fs::path(other["recording"].get<std::string>()).parent_path(), elsewhere);
  const Outcome refused = kymod.kymo({"snapshot", "--dir", elsewhere + "/missing"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("create its folder first"), std::string::npos) << refused.err;
}

TEST(SnapshotTest, ALogFileOnADiskThatStallsHoldsUpNothingElse) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string log = disk.path() + "/log.tsv";
  Kymod kymod({"--profiling-metrics-log", log});
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  disk.be("stalls");
  const nlohmann::json taken = kymod.kymo_json({"snapshot", "--before=0.5", "--after=0.5"});
  EXPECT_FALSE(read_recording(taken["recording"]).at("Time (ns)").empty());
  const std::string dir = kymod.path("checkpoint");
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir}));
  EXPECT_GT(ended_metadata(dir + "/recordings/dump.tsv")["stats"]["rows_written"], 0);
  disk.be("well");
  EXPECT_EQ(kymod.stop(SIGTERM), 0) << kymod.log();
  const nlohmann::json stats = ended_metadata(log)["stats"];
  EXPECT_EQ(stats["rows_written"], read_recording(log).at("Time (ns)").size());
  EXPECT_EQ(stats["ticks_due"].get<std::uint64_t>(),
            stats["rows_written"].get<std::uint64_t>() + stats["missed_late"].get<std::uint64_t>() +
                stats["missed_ring_full"].get<std::uint64_t>() +
                stats["missed_sink_error"].get<std::uint64_t>() +
                stats["missed_frozen"].get<std::uint64_t>());
}

// A change drops the rows that are only in memory.
TEST(SnapshotTest, AfterAChangeASnapshotIsShorterAndSaysWhy) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--profiling-keep", "3"});
  kymod.start();
  ASSERT_TRUE(eventually([&] {
    const nlohmann::json recorder = kymod.kymo_json({"recorder"});
    return recorder["reach_ns"] == recorder["kept_ns"];
  }));
  const Outcome whole = kymod.kymo({"snapshot", "--json", "--before=2", "--after=0"});
  EXPECT_EQ(whole.err, "");
  EXPECT_EQ(nlohmann::json::parse(whole.out)["before_ns"], 2'000'000'000);
  // On a busy machine newer rows can overwrite the oldest before they are written. Then the snapshot says that instead.
  Outcome more;
  EXPECT_TRUE(eventually([&] {
    more = kymod.kymo({"snapshot", "--before=60", "--after=0"});
    return more.err.find("rows took their place in memory") == std::string::npos;
  }));
  EXPECT_NE(more.err.find(": kymod keeps little more than 3"), std::string::npos) << more.err;

  // The snapshot must reach back only to the change. If the machine stands still after the change for as long as kymod
  // keeps rows, this cannot be seen. Then the test makes the change again.
  EXPECT_TRUE(eventually([&] {
    const std::uint64_t changed_ns = monotonic_ns();
    const Outcome set = kymod.kymo({"recorder", "set", "--json", "--rate-us", "2000"});
    EXPECT_NE(set.err.find("its rows in memory are gone"), std::string::npos) << set.err;
    const nlohmann::json recorder = nlohmann::json::parse(set.out);
    EXPECT_LE(recorder["reach_ns"], monotonic_ns() - changed_ns);
    EXPECT_GT(recorder["kept_ns"], 2'500'000'000);
    const Outcome shorter = kymod.kymo({"snapshot", "--json", "--before=100", "--after=0"});
    EXPECT_EQ(shorter.exit_code, 0);
    const std::uint64_t since_ns = monotonic_ns() - changed_ns;
    EXPECT_LE(nlohmann::json::parse(shorter.out)["before_ns"], since_ns);
    const bool in_time = since_ns < 2'500'000'000;
    if (in_time) {
      EXPECT_NE(shorter.err.find("the recorder was started or changed then"), std::string::npos)
          << shorter.err;
    }
    return in_time;
  }));
  EXPECT_NE(kymod.kymo({"recorder", "stop"}).err.find("rows in memory are gone"),
            std::string::npos);
}

TEST(SnapshotTest, ASignalTakesOne) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_EQ(kill(kymod.pid(), SIGUSR1), 0);
  ASSERT_TRUE(eventually([&] { return snapshots_of(kymod).size() == 1; })) << kymod.log();
  EXPECT_EQ(ended_metadata(snapshots_of(kymod)[0])["about"]["reason"], "signal");
}

TEST(SnapshotTest, ARuleTakesOneOfAFailedDump) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--profiling-rule", "dumps[error] > +0"});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  // A refused request does not count as a failure.
  EXPECT_NE(kymod.kymo({"dump", "process", "2"}).exit_code, 0);
  EXPECT_NE(kymod.kymo({"dump", "process", "work", "--deadline", "1ms"}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return snapshots_of(kymod).size() == 1; })) << kymod.log();
  const nlohmann::json metadata = ended_metadata(snapshots_of(kymod)[0]);
  EXPECT_EQ(metadata["about"]["rule"], "dumps[error] > +0");
  const std::vector<std::uint64_t> failed =
      read_recording(snapshots_of(kymod)[0]).at("dumps[error]");
  EXPECT_EQ(failed.front(), 0U);
  EXPECT_EQ(failed.back(), 1U);
  EXPECT_TRUE(kymod.logs("rule 'dumps[error] > +0' fired"));
}

TEST(SnapshotTest, ARuleThatDoesNotParseOrNamesNoColumnEndsTheStart) {
  KYMO_NEEDS_CRIU();
  const Outcome broken = run({KYMOD_PROGRAM, "--profiling-rule", "phase >> 1"});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_NE(broken.err.find("at character 8: expected a whole number"), std::string::npos)
      << broken.err;
}

}  // namespace
}  // namespace kymo::test
