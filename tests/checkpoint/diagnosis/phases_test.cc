#include "checkpoint/diagnosis/phases.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>

namespace kymo::diagnosis {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// The log of a dump at level 3, which has no lines about notifications. kymod answered the
// notifications between 200 and 300 ms.
const std::string kDumpLog = R"((00.000000) CRIU run id = 1
(00.150000) Dumping processes (pid: 7 comm: churn)
(00.152000) Seized task 7, state 1
(00.160000) net: Lock network
(00.170000) Set up parasite blob using memfd
(00.180000) Dumping pages (type: 59 pid: 7)
(00.280000) Dumping core (pid: 7)
(00.290000) Unfreezing tasks into 2
(00.298000) Writing stats
(00.300000) Dumping finished successfully
)";

RequestTimes times_of_dump() {
  RequestTimes times;
  times.began_ns = 1000 * kMs;
  times.runtime_called_ns = 1010 * kMs;
  times.log_began_ns = 1050 * kMs;
  times.criu_ended_ns = 1352 * kMs;
  times.ended_ns = 1360 * kMs;
  times.notifications = {{"pre-dump", 1201 * kMs, 1204 * kMs},
                         {"query-ext-files", 1209 * kMs, 1210 * kMs},
                         {"post-dump", 1339 * kMs, 1340 * kMs}};
  return times;
}

void expect_partition(const std::vector<Phase>& phases, std::uint64_t duration_ns) {
  std::uint64_t at_ns = 0;
  for (const Phase& phase : phases) {
    EXPECT_EQ(phase.begin_ns, at_ns) << phase.name;
    EXPECT_GT(phase.end_ns, phase.begin_ns) << phase.name;
    EXPECT_FALSE(phase.name.empty());
    EXPECT_FALSE(phase.evidence.empty()) << phase.name;
    at_ns = phase.end_ns;
  }
  EXPECT_EQ(at_ns, duration_ns);
}

std::set<std::string> names_of(const std::vector<Phase>& phases) {
  std::set<std::string> names;
  for (const Phase& phase : phases) names.insert(phase.name);
  return names;
}

TEST(DiagnosisPhasesTest, ADumpIsDividedByLogNotificationsAndClock) {
  const std::vector<Phase> phases = phases_of(times_of_dump(), criu::dump_phases(kDumpLog, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "prepare"), 10 * kMs);
  EXPECT_EQ(time_in(phases, "start CRIU"), 40 * kMs);
  EXPECT_EQ(time_in(phases, "look at the kernel"), 150 * kMs);
  EXPECT_EQ(time_in(phases, "freeze"), 6 * kMs);  // 10 ms, less 4 ms of answers
  EXPECT_EQ(time_in(phases, "kymod answers"), 5 * kMs);
  EXPECT_EQ(time_in(phases, "memory"), 100 * kMs);
  EXPECT_EQ(time_in(phases, "finish"), 12 * kMs);
  EXPECT_EQ(frozen_ns(phases), (298 - 154) * kMs) << "CRIU freezes after the answer to pre-dump";
}

// An action script of the user slept, and the time was told as freezing, as saving files, or as late answers of kymod.
TEST(DiagnosisPhasesTest, AScriptOfSomebodyElseIsToldFromKymodsAnswers) {
  const std::string log = R"((00.000000) CRIU run id = 1
(00.150000) Dumping processes (pid: 7 comm: churn)
(00.190000) irmap: Searching irmap cache in work dir
(00.195000) net: Lock network
(00.200000) Dumping core (pid: 7)
(00.210000) Writing image inventory (version 1)
(00.290000) Unfreezing tasks into 2
(00.298000) Writing stats
)";
  RequestTimes times = times_of_dump();
  times.others_scripts = true;
  times.notifications = {{"pre-dump", 1201 * kMs, 1204 * kMs},
                         {"post-dump", 1265 * kMs, 1270 * kMs}};
  std::vector<Phase> phases = phases_of(times, criu::dump_phases(log, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "kymod answers"), (4 + 10) * kMs);
  EXPECT_EQ(time_in(phases, "hooks"), (240 - 204 + 340 - 270) * kMs);
  EXPECT_EQ(time_in(phases, "freeze"), 5 * kMs);
  EXPECT_EQ(frozen_ns(phases), (298 - 190) * kMs);
  times.others_scripts = false;
  phases = phases_of(times, criu::dump_phases(log, {}));
  EXPECT_EQ(time_in(phases, "hooks"), 0U) << "CRIU runs no script but that of kymod";
  EXPECT_EQ(time_in(phases, "kymod answers"), (40 + 80) * kMs);
}

TEST(DiagnosisPhasesTest, StatisticsDivideTheMemoryPhase) {
  criu::DumpStats stats;
  stats.memwrite_time_us = 70'000;
  const std::vector<Phase> phases = phases_of(times_of_dump(), criu::dump_phases(kDumpLog, stats));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "memory: finding pages"), 30 * kMs);
  EXPECT_EQ(time_in(phases, "memory: writing pages"), 70 * kMs);
}

TEST(DiagnosisPhasesTest, WithoutALogTheNotificationsShowCoarserPhasesAndTheHooks) {
  const std::vector<Phase> phases = phases_of(times_of_dump(), {});
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "kymod answers"), 5 * kMs);
  EXPECT_EQ(time_in(phases, "freeze"), 5 * kMs);
  EXPECT_EQ(time_in(phases, "memory, processes and files"), 129 * kMs);
  EXPECT_EQ(time_in(phases, "resume or end"), 12 * kMs);
  EXPECT_EQ(frozen_ns(phases), (1352 - 1204) * kMs);
}

// 13 s of a sync that was cancelled were "processes and files": its notification counted as answered at once.
TEST(DiagnosisPhasesTest, ANotificationWithoutAnAnswerWaitsForItUntilCriuEnds) {
  RequestTimes times = times_of_dump();
  times.failed = true;
  times.notifications.back().answered_ns = 0;
  const std::uint64_t waited_ns = times.criu_ended_ns - times.notifications.back().at_ns;
  const std::uint64_t before_ns = time_in(phases_of(times_of_dump(), {}), "kymod answers");
  const std::vector<Phase> phases = phases_of(times, {});
  expect_partition(phases, 360 * kMs);
  EXPECT_GE(time_in(phases, "kymod answers"), waited_ns);
  EXPECT_GT(waited_ns, before_ns);
}

// Without this phase, the time was part of "processes and files", which then seemed slow.
TEST(DiagnosisPhasesTest, WhatKymodDoesIsAPhaseOfItsOwnWhileTheProcessesStandStill) {
  RequestTimes times = times_of_dump();
  const std::vector<Phase> before = phases_of(times, criu::dump_phases(kDumpLog, {}));
  std::uint64_t end_ns = 0;
  for (const Phase& phase : before) {
    if (phase.name == "resume or end") end_ns = times.began_ns + phase.begin_ns;
  }
  ASSERT_NE(end_ns, 0U);
  times.own_work = {{"rehearsal", end_ns - 20 * kMs, end_ns - 10 * kMs},
                    {"sync", end_ns - 10 * kMs, end_ns - 5 * kMs}};
  const std::vector<Phase> phases = phases_of(times, criu::dump_phases(kDumpLog, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "rehearsal"), 10 * kMs);
  EXPECT_EQ(time_in(phases, "sync"), 5 * kMs);
  EXPECT_EQ(frozen_ns(phases), frozen_ns(before));
  for (const Phase& phase : phases) EXPECT_TRUE(phase.name != "rehearsal" || phase.frozen);
}

// A container of Docker, or one of containerd that is proved: CRIU's statistics lack what its runtime held it for.
TEST(DiagnosisPhasesTest, AContainerThatItsRuntimePausesStandsStillFromThenOn) {
  RequestTimes times = times_of_dump();
  times.container = true;
  const std::vector<Phase> before = phases_of(times, criu::dump_phases(kDumpLog, {}));
  EXPECT_EQ(held_ns(before), 0U);
  std::uint64_t first_ns = 0;
  std::uint64_t end_ns = 0;
  for (const Phase& phase : before) {
    if (phase.frozen && first_ns == 0) first_ns = phase.begin_ns;
    if (phase.name == "resume or end") end_ns = phase.end_ns;
  }
  times.paused = {"", times.began_ns + 3 * kMs, times.began_ns + 5 * kMs};
  times.own_work = {
      {"rehearsal", times.began_ns + end_ns + kMs, times.began_ns + end_ns + 8 * kMs}};
  const std::vector<Phase> phases = phases_of(times, criu::dump_phases(kDumpLog, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "pause"), 2 * kMs);
  EXPECT_EQ(frozen_ns(phases), end_ns + 8 * kMs - 3 * kMs);
  EXPECT_EQ(held_ns(phases), first_ns - 3 * kMs + 8 * kMs);
}

// At --log-level 1 a dump without RPC has two notifications. All between them was called "freeze".
RequestTimes times_without_log() {
  RequestTimes times = times_of_dump();
  times.log_began_ns = 0;
  times.notifications.erase(times.notifications.begin() + 1);
  return times;
}

TEST(DiagnosisPhasesTest, WithoutALogTheStatisticsSayHowLongTheFreezeWas) {
  criu::DumpStats stats;
  stats.freezing_time_us = 2'000;
  stats.frozen_time_us = 140'000;
  stats.memdump_time_us = 100'000;
  stats.memwrite_time_us = 70'000;
  // An error that did not matter is the only kind of line that this log may have.
  for (const char* log :
       {"", "(00.140000) Error (criu/x.c:1): a\n(00.240000) Error (criu/x.c:2): b\n"}) {
    const std::vector<Phase> phases = phases_of(times_without_log(), criu::dump_phases(log, stats));
    expect_partition(phases, 360 * kMs);
    EXPECT_EQ(time_in(phases, "look at the kernel"), 0U);
    EXPECT_EQ(time_in(phases, "freeze"), 2 * kMs);
    EXPECT_EQ(time_in(phases, "memory: finding pages"), 30 * kMs);
    EXPECT_EQ(time_in(phases, "memory: writing pages"), 69 * kMs);  // less 1 ms of hooks
    EXPECT_EQ(time_in(phases, "collect, processes and files"), 34 * kMs);
    EXPECT_EQ(frozen_ns(phases), (1352 - 1204) * kMs);
    for (const Phase& phase : phases) {
      if (!phase.name.starts_with("memory")) continue;
      EXPECT_EQ(phase.evidence, criu::kFromStatistics);
      EXPECT_EQ(phase.uncertainty_ns, 34 * kMs) << "CRIU may have begun with it so much earlier";
    }
  }
}

TEST(DiagnosisPhasesTest, WithoutALogAndStatisticsNoTimeIsCalledFreeze) {
  const std::vector<Phase> phases = phases_of(times_without_log(), criu::dump_phases("", {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "freeze"), 0U);
  EXPECT_EQ(time_in(phases, "undivided: freeze, memory, processes and files"), 135 * kMs);
  EXPECT_EQ(frozen_ns(phases), (1352 - 1204) * kMs);
  // Statistics that do not fit into that time divide nothing.
  criu::DumpStats stats;
  stats.memdump_time_us = 200'000;
  EXPECT_EQ(names_of(phases_of(times_without_log(), criu::dump_phases("", stats))),
            names_of(phases));
}

TEST(DiagnosisPhasesTest, TheRestOfATruncatedLogIsNotGuessed) {
  const std::string log = kDumpLog.substr(0, kDumpLog.find("(00.280000)"));
  const std::vector<Phase> phases = phases_of(times_of_dump(), criu::dump_phases(log, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "memory"), 0U);  // the log is cut where this phase begins
  EXPECT_GT(time_in(phases, "not in CRIU's log"), 100 * kMs);
  EXPECT_EQ(time_in(phases, "resume or end"), 12 * kMs);  // known from the notification
}

TEST(DiagnosisPhasesTest, WhatAnEndedCriuDidLastItDidUntilItEnded) {
  RequestTimes times = times_of_dump();
  times.notifications.clear();
  times.failed = true;
  const std::string log = kDumpLog.substr(0, kDumpLog.find("(00.280000)"));
  const std::vector<Phase> phases = phases_of(times, criu::dump_phases(log, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "not in CRIU's log"), 0U);
  times.failed = false;
  EXPECT_GT(time_in(phases_of(times, criu::dump_phases(log, {})), "not in CRIU's log"), 100 * kMs);
}

TEST(DiagnosisPhasesTest, ARequestThatNeverReachedItsRuntimeIsPrepared) {
  RequestTimes times;
  times.began_ns = 5;
  times.ended_ns = 30;
  const std::vector<Phase> phases = phases_of(times, {});
  expect_partition(phases, 25);
  EXPECT_EQ(names_of(phases), std::set<std::string>{"prepare"});
  times.ended_ns = 5;
  EXPECT_TRUE(phases_of(times, {}).empty());
}

TEST(DiagnosisPhasesTest, ALogWhoseBeginNobodySawEndsWithCriu) {
  RequestTimes times = times_of_dump();
  times.log_began_ns = 0;
  times.notifications.clear();
  const std::vector<Phase> phases = phases_of(times, criu::dump_phases(kDumpLog, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "memory"), 100 * kMs);
  for (const Phase& phase : phases) {
    if (phase.name == "memory") {
      EXPECT_GE(phase.uncertainty_ns, 42 * kMs);
    }
  }
}

TEST(DiagnosisPhasesTest, AContainersTimeAfterTheLogIsItsRuntimes) {
  RequestTimes times = times_of_dump();
  times.container = true;
  times.criu_ended_ns = 1355 * kMs;
  const std::vector<Phase> phases = phases_of(times, criu::dump_phases(kDumpLog, {}));
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(time_in(phases, "container runtime"), 5 * kMs);
  EXPECT_EQ(time_in(phases, "finish"), 7 * kMs);
}

TEST(DiagnosisPhasesTest, NoLogAndNoClockMakeAHoleOrAnOverlap) {
  const std::vector<std::string> texts{"Dumping processes (pid: 7)",
                                       "Dumping pages (type: 1 pid: 7)",
                                       "Dumping core (pid: 7)",
                                       "Unfreezing tasks into 1",
                                       "Writing stats",
                                       "Running post-dump scripts",
                                       "\tRPC",
                                       "anything \xff"};
  const std::vector<std::string> names{"pre-dump", "network-lock", "post-dump", "unknown"};
  std::mt19937_64 random(14);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  for (int run = 0; run < 3000; ++run) {
    std::string log;
    std::uint64_t at_us = 0;
    for (std::uint64_t lines = below(60); lines != 0; --lines) {
      at_us = below(50) == 0 ? below(1'000'000) : at_us + below(20'000);
      char time[32];
      std::snprintf(time, sizeof(time), "(%02u.%06u) ", static_cast<unsigned>(at_us / 1'000'000),
                    static_cast<unsigned>(at_us % 1'000'000));
      log += time + texts[below(texts.size())] + '\n';
    }
    log.resize(below(4) == 0 ? below(log.size() + 1) : log.size());
    RequestTimes times;
    times.restore = below(3) == 0;
    times.container = below(3) == 0;
    times.began_ns = 1 + below(kMs);
    times.ended_ns = times.began_ns + below(900 * kMs);
    const auto any = [&] { return below(4) == 0 ? 0 : times.began_ns + below(1000 * kMs); };
    times.runtime_called_ns = any();
    times.pre_dumps_ended_ns = below(4) == 0 ? any() : 0;
    times.log_began_ns = any();
    times.criu_ended_ns = any();
    for (std::uint64_t i = below(6); i != 0; --i) {
      const std::uint64_t at_ns = below(1000 * kMs);
      times.notifications.push_back({names[below(names.size())], at_ns, at_ns + below(20 * kMs)});
    }
    const criu::LogPhases read =
        times.restore ? criu::restore_phases(log, {}) : criu::dump_phases(log, {});
    const std::vector<Phase> phases = phases_of(times, read);
    expect_partition(phases, times.ended_ns - times.began_ns);
    expect_partition(phases_of_log(read, times.restore), read.total_us * 1000);
    ASSERT_FALSE(HasFailure()) << "run " << run << "\n" << log;
  }
}

TEST(DiagnosisPhasesTest, ThousandsOfStretchesAreMergedAndStillAddUp) {
  std::string log = "(00.000000) begin\n";
  for (int pid = 1; pid < 4000; ++pid) {
    char line[128];
    std::snprintf(line, sizeof(line), "(%02d.%06d) Dumping pages (type: 1 pid: %d)\n", pid / 1000,
                  pid % 1000 * 1000, pid);
    log += line;
    std::snprintf(line, sizeof(line), "(%02d.%06d) Dumping core (pid: %d)\n", pid / 1000,
                  pid % 1000 * 1000 + 500, pid);
    log += line;
  }
  const criu::LogPhases read = criu::dump_phases(log, {});
  const std::vector<Phase> phases = phases_of_log(read, false);
  EXPECT_LE(phases.size(), 400U);
  expect_partition(phases, read.total_us * 1000);
}

// CRIU could not attach to the process, so it never stood still.
TEST(DiagnosisPhasesTest, WhatCriuNeverStoppedDidNotStandStill) {
  const std::string log =
      "(00.000000) CRIU run id = 1\n"
      "(00.150000) Dumping processes (pid: 7 comm: churn)\n"
      "(00.152000) Warn  (infect.c:128): Unable to interrupt task: 7 (Operation not permitted)\n"
      "(00.170000) Unfreezing tasks into 1\n"
      "(00.180000) Error (criu/cr-dump.c:2098): Dumping FAILED.\n";
  criu::LogPhases read = criu::dump_phases(log, {});
  const std::vector<Phase> phases = phases_of(times_of_dump(), read);
  expect_partition(phases, 360 * kMs);
  EXPECT_EQ(frozen_ns(phases), 0U);
  EXPECT_EQ(frozen_ns(phases_of_log(read, false)), 0U);
  read.stopped_none = false;
  EXPECT_GT(frozen_ns(phases_of(times_of_dump(), read)), 0U);
}

TEST(DiagnosisPhasesTest, JsonKeepsEverythingAndDamagedJsonIsNoPhases) {
  const std::vector<Phase> phases = phases_of(times_of_dump(), criu::dump_phases(kDumpLog, {}));
  const std::vector<Phase> read = phases_from(to_json(phases));
  ASSERT_EQ(read.size(), phases.size());
  EXPECT_EQ(to_json(read), to_json(phases));
  for (const char* text :
       {"null", "3", "[3]", R"([{"name":1}])", R"([{"name":"a","begin_ns":5,"end_ns":4}])",
        R"([{"name":"a","begin_ns":-5,"end_ns":4}])"}) {
    EXPECT_TRUE(phases_from(nlohmann::json::parse(text)).empty()) << text;
  }
}

// "finish" took 11 ms in the reply and 5 ms in the record, which cannot tell how long it takes to save it.
TEST(DiagnosisPhasesTest, SavingTheRecordIsAPhaseOfItsOwn) {
  const std::vector<Phase> known = {{"prepare", 0, 10, 0, "", false},
                                    {"finish", 10, 15, 0, "", false}};
  const std::vector<Phase> all = with_saving(known, 21);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(time_in(all, "finish"), 5U);
  EXPECT_EQ(all[2].name, kSavePhase);
  EXPECT_EQ(all[2].begin_ns, 15U);
  EXPECT_EQ(all[2].end_ns, 21U);
  EXPECT_FALSE(all[2].frozen);
  EXPECT_EQ(with_saving(known, 15).size(), 2U);
}

}  // namespace
}  // namespace kymo::diagnosis
