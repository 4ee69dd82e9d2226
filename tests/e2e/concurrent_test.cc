// Requests for different processes and directories at the same time run in parallel.
// faults/beside.cc has those for the same ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kProcesses = 8;

// Calls it with each number at the same time, and returns when all calls have returned.
void at_once(const std::function<void(int)>& call) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) threads.emplace_back(call, i);
  for (std::thread& thread : threads) thread.join();
}

std::string name(int i) {
  return "work" + std::to_string(i);
}

TEST(ConcurrentTest, EightProcessesAreDumpedAndRestoredAtOnce) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  std::vector<json> jobs;
  for (int i = 0; i < kProcesses; ++i) jobs.push_back(kymod.churn(16, name(i)));
  std::vector<Outcome> outcomes(kProcesses);
  at_once([&](int i) {
    outcomes[static_cast<std::size_t>(i)] =
        kymod.kymo({"dump", "process", name(i), "--dir", kymod.path(name(i))});
  });
  for (const Outcome& dump : outcomes) EXPECT_EQ(dump.exit_code, 0) << dump.err;
  for (int i = 0; i < kProcesses; ++i) {
    EXPECT_TRUE(fs::exists(kymod.path(name(i)) + "/images/inventory.img"));
    EXPECT_EQ(kymod.job(name(i))["last_checkpoint"], kymod.path(name(i)));
  }
  at_once([&](int i) {
    outcomes[static_cast<std::size_t>(i)] = kymod.kymo({"restore", "process", kymod.path(name(i))});
  });
  for (const Outcome& restore : outcomes) EXPECT_EQ(restore.exit_code, 0) << restore.err;
  for (const json& job : jobs) EXPECT_TRUE(kymod.goes_on(job)) << read_file(job["stderr_path"]);
}

TEST(ConcurrentTest, ARecordingHoldsWhatItsOwnRequestDidAndNotThatOfOthers) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(32, "small"));
  static_cast<void>(kymod.churn(96, "large"));
  std::map<std::string, json> dumps;
  std::mutex mutex;
  const auto dump = [&](const std::string& name) {
    const Outcome outcome = kymod.kymo({"dump", "process", "--json", "--no-stream", name});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::lock_guard lock(mutex);
    dumps[name] = json::parse(outcome.out);
  };
  std::thread other(dump, "large");
  dump("small");
  other.join();

  for (const auto& [name, dumped] : dumps) {
    SCOPED_TRACE(name);
    const std::string recording = dumped["recording"];
    const json stats = ended_metadata(recording)["about"]["stats"];
    ASSERT_EQ(stats, dumped["stats"]);
    const auto columns = read_recording(recording);
    const auto all = [&](const std::string& column) {
      EXPECT_EQ(columns.at(column).front(), 0U) << column;
      EXPECT_TRUE(std::is_sorted(columns.at(column).begin(), columns.at(column).end())) << column;
      return columns.at(column).back();
    };
    for (const char* column : {"pages_scanned", "pages_written", "freezing_time_us",
                               "frozen_time_us", "memdump_time_us", "memwrite_time_us"}) {
      EXPECT_EQ(all(column), stats[column].get<std::uint64_t>()) << column;
    }
    EXPECT_EQ(all("image_written_bytes"), dumped["image_bytes"].get<std::uint64_t>());
    EXPECT_EQ(all("dumps[ok]"), 1U);
    EXPECT_EQ(all("criu_calls[dump,ok]"), 1U);
    // Each dump watched its own process, which is gone at the end, and its own CRIU.
    EXPECT_EQ(all("target_gone"), 1U);
    EXPECT_GE(all("criu_written_bytes"), dumped["image_bytes"].get<std::uint64_t>() * 9 / 10);
    EXPECT_LE(all("criu_written_bytes"), dumped["image_bytes"].get<std::uint64_t>() * 11 / 10);
    for (const char* daemons : {"criu_notifications[post-dump]", "processes_managed",
                                "otlp_spans_sent", "profiler_ticks_missed"}) {
      EXPECT_EQ(columns.count(daemons), 0U) << daemons;
    }
    EXPECT_EQ(columns.at("phase").back(), 0U);
    EXPECT_EQ(columns.at("request_done_bytes").back(), 0U) << "the request has ended";
  }
}

}  // namespace
}  // namespace kymo::test
