// The recording that each request leaves: what it shows of a slow dump, and of one that failed.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <set>

#include "moving.h"
#include "programs.h"
#include "small_disk.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t sum = 0;
  for (const auto& file : fs::directory_iterator(folder)) sum += file.file_size();
  return sum;
}

// The value of kymod's counter with this name.
std::uint64_t count_now(const Kymod& kymod, const std::string& name) {
  for (const nlohmann::json& metric : kymod.kymo_json({"metrics"})) {
    if (metric["name"] == name) return metric["values"][0]["value"].get<std::uint64_t>();
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// CRIU is stopped after it has written something and before it writes the memory, until there are rows with
// these bytes.
TEST(RecordingTest, ASlowDumpShowsItsBytesAndPhasesWhileItRuns) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(16, "work"));
  // kymod must have recorded at least a second before the request begins.
  ASSERT_TRUE(
      eventually([&] { return kymod.kymo_json({"recorder"})["reach_ns"] > 1'200'000'000; }));
  const std::string dir = kymod.path("checkpoint");
  criu.break_at("Dumping pages (type", SIGSTOP);
  auto dumping = std::async(std::launch::async, [&] {
    return kymod.kymo_json({"dump", "process", "work", "--dir", dir, "--no-stream"});
  });
  const pid_t stopped = criu.stopped();
  ASSERT_NE(stopped, 0) << kymod.log();
  criu.mend();
  EXPECT_TRUE(eventually([&] { return count_now(kymod, "image_written_bytes") > 0; }));
  // The number of rows is updated once a second. So after two updates, there are rows that were taken after
  // this point.
  for (int second = 0; second < 2; ++second) {
    const std::uint64_t rows = count_now(kymod, "profiler_rows");
    EXPECT_TRUE(eventually([&] { return count_now(kymod, "profiler_rows") > rows; }));
  }
  kill(stopped, SIGCONT);
  const nlohmann::json dump = dumping.get();
  const std::string recording = dump["recording"];
  EXPECT_EQ(recording, dir + "/recordings/dump.tsv");
  const nlohmann::json metadata = ended_metadata(recording);
  const auto columns = read_recording(recording);

  const std::vector<std::uint64_t>& bytes = columns.at("image_written_bytes");
  EXPECT_TRUE(std::is_sorted(bytes.begin(), bytes.end()));
  const std::set<std::uint64_t> distinct(bytes.begin(), bytes.end());
  EXPECT_GT(distinct.size(), 2U) << "the recording must show bytes before the end of the dump";
  EXPECT_EQ(bytes.front(), 0U);
  EXPECT_EQ(bytes.back(), bytes_in(dir + "/images"));
  EXPECT_EQ(bytes.back(), dump["image_bytes"]);
  EXPECT_GE(bytes.back(), 16U << 20U);

  std::set<std::string> notified;
  for (const auto& mark : metadata["marks"]) notified.insert(mark["name"].get<std::string>());
  EXPECT_TRUE(notified.count("pre-dump") == 1 && notified.count("post-dump") == 1);
  const std::vector<std::uint64_t>& phase = columns.at("phase");
  EXPECT_EQ(phase.front(), 0U);
  EXPECT_EQ(phase.back(), 0U);
  EXPECT_GE(std::set<std::uint64_t>(phase.begin(), phase.end()).size(), 2U);

  // From a second before the request to a second after it, each tick is a row or was counted as missed.
  const std::uint64_t length = metadata["stats"]["ticks_due"].get<std::uint64_t>() *
                               metadata["interval_ns"].get<std::uint64_t>();
  EXPECT_GE(length, dump["duration_ns"].get<std::uint64_t>() + 1'900'000'000U);
  EXPECT_EQ(metadata["about"]["stats"], dump["stats"]);
}

// Before kymod looked at CRIU, the target and the machine, one of 57 columns changed. How many change
// depends on how often a busy machine lets kymod look. On a quiet machine it is at least 15 in a dump and at
// least 12 in a restore.
TEST(RecordingTest, WhatHappensInsideIsSeenAsItHappens) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(512, "work"));
  const std::string dir = kymod.path("checkpoint");
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir}));
  const nlohmann::json dump = ended_metadata(dir + "/recordings/dump.tsv");
  const std::vector<std::string> dumped =
      columns_that_move(dir + "/recordings/dump.tsv", moves_of(dump));
  EXPECT_GE(dumped.size(), 15U) << ::testing::PrintToString(dumped);
  static_cast<void>(kymod.kymo_json({"restore", "process", dir}));
  const nlohmann::json restore = ended_metadata(dir + "/recordings/restore.tsv");
  const std::vector<std::string> restored =
      columns_that_move(dir + "/recordings/restore.tsv", moves_of(restore));
  EXPECT_GE(restored.size(), 12U) << ::testing::PrintToString(restored);
  tell_moving("dump of a process", dir + "/recordings/dump.tsv", dump);
  tell_moving("restore of a process", dir + "/recordings/restore.tsv", restore);
  const auto columns = read_recording(dir + "/recordings/restore.tsv");
  EXPECT_EQ(columns.at("target_running").back(), 1U);
  // The kernel counts resident pages for each CPU, and adds them up in batches, so its figure is short of some pages.
  constexpr std::uint64_t kUncounted = 4U << 20U;
  EXPECT_GE(columns.at("target_resident_bytes").back(), (512U << 20U) - kUncounted)
      << "the memory must be restored";
  EXPECT_GT(restore["about"]["inside"]["readings"], 2);
  const auto during = read_recording(dir + "/recordings/dump.tsv");
  if (during.count("memory_moved_bytes") == 0) {
    GTEST_SKIP() << "no BPF here: " << dump["about"]["inside"]["missing"];
  }
  EXPECT_GE(during.at("memory_moved_bytes").back(), 512U << 20U)
      << "all memory must have been copied out of the process";
  EXPECT_GE(columns.at("memory_moved_bytes").back(), 512U << 20U)
      << "all memory must have been read back";
  EXPECT_GT(during.at("criu_run_ns").back(), 1'000'000U);
  EXPECT_GT(during.at("criu_off_socket_ns").back(), 0U)
      << "CRIU waits for the answers of its parasite";
  EXPECT_GT(during.at("criu_sys_ptrace_calls").back(), 0U);
  EXPECT_GT(during.at("target_off_stopped_ns").back(), 0U);
  EXPECT_GT(columns.at("target_run_ns").back(), 0U);
  for (const char* const name : {"memory_moved_bytes", "criu_run_ns", "criu_sys_write_bytes"}) {
    EXPECT_NE(std::find(dumped.begin(), dumped.end(), name), dumped.end()) << name << " moves";
  }
}

TEST(RecordingTest, OnRequestPagesAndTheStacksOfWaitsAreSeenToo) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--inside=pages,offcpu"});
  kymod.start();
  static_cast<void>(kymod.churn(64, "work"));
  const std::string dir = kymod.path("checkpoint");
  // With a stream, kymod writes the images, and not CRIU.
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir, "--no-stream"}));
  static_cast<void>(ended_metadata(dir + "/recordings/dump.tsv"));
  const auto columns = read_recording(dir + "/recordings/dump.tsv");
  if (columns.count("criu_run_ns") == 0) GTEST_SKIP() << "no BPF here";
  EXPECT_GE(columns.at("criu_allocated_bytes").back(), 64U << 20U)
      << "the page cache of the images counts as allocated memory";
  EXPECT_GT(columns.at("criu_user_faults").back(), 0U);
  const std::string waits = dir + "/recordings/dump.waits.pb.gz";
  EXPECT_TRUE(eventually([&] { return fs::exists(waits); }));
  const Outcome shown = kymod.kymo({"stats", dir});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
}

TEST(RecordingTest, WithoutInsideThereAreNoSuchColumns) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--no-inside"});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string dir = kymod.path("checkpoint");
  static_cast<void>(kymod.kymo_json({"dump", "process", "work", "--dir", dir}));
  EXPECT_FALSE(ended_metadata(dir + "/recordings/dump.tsv")["about"].contains("inside"));
  const auto columns = read_recording(dir + "/recordings/dump.tsv");
  EXPECT_EQ(columns.count("criu_cpu_ns"), 0U);
  EXPECT_EQ(columns.count("image_written_bytes"), 1U);
}

TEST(RecordingTest, AFailedDumpLeavesARecordingToo) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  // CRIU does not dump a process that has a child in another pid namespace.
  const nlohmann::json job = kymod.kymo_json({"run", "process", "--name", "piped", "--", "sh", "-c",
                                              "exec unshare --fork --pid --kill-child sleep 1000"});
  ASSERT_TRUE(eventually([&] {
    return run({"pgrep", "-P", std::to_string(job["pid"].get<int>())}).exit_code == 0;
  }));
  const std::string dir = kymod.path("failed");
  const Outcome dump = kymod.kymo({"dump", "process", "piped", "--force", "--dir", dir});
  ASSERT_EQ(dump.exit_code, 1) << dump.out;
  EXPECT_EQ(std::count(dump.err.begin(), dump.err.end(), '\n'), 1) << dump.err;
  EXPECT_FALSE(fs::exists(dir + "/images"));
  EXPECT_FALSE(fs::exists(dir + "/images.partial"));
  EXPECT_EQ(kymod.job("piped")["state"], "running");
  const nlohmann::json record = nlohmann::json::parse(read_file(dir + "/checkpoint.json"));
  EXPECT_EQ(record["state"], "failed");
  EXPECT_NE(dump.err.find(record["error"].get<std::string>()), std::string::npos);
  const nlohmann::json about = ended_metadata(dir + "/recordings/dump.tsv")["about"];
  EXPECT_EQ(about["outcome"], "error");
  EXPECT_EQ(read_recording(dir + "/recordings/dump.tsv").at("dumps[error]").back(), 1U);
  const Outcome restore = kymod.kymo({"restore", "process", dir});
  EXPECT_EQ(restore.exit_code, 1);
  EXPECT_NE(restore.err.find("its dump failed"), std::string::npos) << restore.err;
  static_cast<void>(run({"pkill", "-KILL", "-P", std::to_string(job["pid"].get<int>())}));
}

// A script that unmounted the disk after the dump found it busy, because the recording went on for a second.
TEST(RecordingTest, WhoWaitsForItsEndFindsTheDirectoryClosed) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(1, "work"));
  const std::string disk = kymod.path("disk");
  const SmallDisk mounted(disk, "size=64m");
  const auto open_files = [&] {
    std::set<std::string> open;
    std::error_code gone;
    for (const auto& fd : fs::directory_iterator("/proc/" + std::to_string(kymod.pid()) + "/fd")) {
      const std::string path = fs::read_symlink(fd.path(), gone).string();
      if (path.starts_with(disk)) open.insert(path);
    }
    return open;
  };
  for (const std::string request : {"dump", "restore"}) {
    std::vector<std::string> words{request, "process", "work", "--wait-for-recording"};
    if (request == "dump") words.insert(words.end(), {"--dir", disk + "/one"});
    const Outcome done = kymod.kymo(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string metadata = read_file(disk + "/one/recordings/" + request + ".meta.json");
    EXPECT_EQ(nlohmann::json::parse(metadata)["state"], "ended");
    EXPECT_EQ(open_files(), std::set<std::string>());
  }
  EXPECT_EQ(::umount(disk.c_str()), 0) << std::strerror(errno);
}

TEST(RecordingTest, TheDaemonWideFileIsKeptBesides) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/all.tsv";
  {
    Kymod kymod(
        {"--profiling-metrics-log", log, "--profiling-metrics", "dumps,image_written_bytes"});
    kymod.start();
    static_cast<void>(kymod.churn(8, "work"));
    const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
    EXPECT_EQ(kymod.stop(SIGTERM), 0);
    EXPECT_EQ(ended_metadata(dump["recording"])["state"], "ended")
        << "kymod must finish the recordings when it stops";
  }
  const auto columns = read_recording(log);
  EXPECT_EQ(columns.size(), 6U) << "the time, the four results of dumps, the bytes";
  EXPECT_EQ(columns.at("dumps[ok]").back(), 1U);
  const nlohmann::json stats = ended_metadata(log)["stats"];
  EXPECT_EQ(stats["rows_written"].get<std::uint64_t>(), columns.at("Time (ns)").size());
  EXPECT_EQ(stats["ticks_due"].get<std::uint64_t>(),
            stats["rows_written"].get<std::uint64_t>() + stats["missed_late"].get<std::uint64_t>() +
                stats["missed_ring_full"].get<std::uint64_t>() +
                stats["missed_sink_error"].get<std::uint64_t>() +
                stats["missed_frozen"].get<std::uint64_t>());
}

TEST(RecordingTest, NoRecordingIsMadeWithoutProfiling) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--profiling-metrics", "none"});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  EXPECT_EQ(dump["recording"], "");
  EXPECT_TRUE(fs::is_empty(dump["directory"].get<std::string>() + "/recordings"));
}

// Before, these two took paths alone, and so explain was the only verb that took the job's name.
TEST(RecordingTest, AJobsNameMeansTheRecordingOfItsNewestDump) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(kymod.churn(1, "churn").contains("pid"));
  const Outcome none = kymod.kymo({"report", "churn"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("this job has no checkpoint"), std::string::npos) << none.err;
  const auto dumped = kymod.kymo_json({"dump", "process", "churn", "--leave-running"});
  const std::string directory = dumped["directory"];
  wait_until_recorded(directory, {"dump"});
  const std::string id = kymod.kymo_json({"checkpoints"})[0]["id"];
  for (const std::string& name : {std::string("churn"), id}) {
    const Outcome report = kymod.kymo({"report", name});
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_EQ(report.out, kymod.kymo({"report", directory}).out);
    const Outcome exported = kymod.kymo({"export", name, "--format", "csv", "--output", "-"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_NE(exported.out.find("image_written_bytes"), std::string::npos);
  }
  // A file of that name is meant first.
  std::ofstream(kymod.path("churn")) << "Time (ns)\tmine\n1\t2\n2\t3\n";
  const Outcome file = run({"sh", "-c",
                            "cd " + kymod.folder().path() + " && " KYMO_PROGRAM " --socket " +
                                kymod.socket() + " report churn"});
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_NE(file.out.find("mine"), std::string::npos) << file.out;
}

}  // namespace
}  // namespace kymo::test
