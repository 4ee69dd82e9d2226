// Causes that overlap, or that only the kernel's statistics or CRIU's log tell apart.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/diagnosis/verdict.h"
#include "example_facts.h"

namespace kymo::diagnosis {
namespace {

// A container with --cpus=0.05 was told that other programs used the CPUs.
TEST(Causes, ALimitOfCpuTimeIsToldFromOtherPrograms) {
  Facts facts = healthy_dump();
  facts.signals.cpu_ns = 50 * kOneMs;
  facts.signals.cpu_wait_ns = 900 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait");
  facts.signals.criu_quota_ns = 140 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait");
  facts.signals.criu_quota_ns = 750 * kOneMs;
  facts.kymod_quota = {"/sys/fs/cgroup/cpu/kymod", 0.05};
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U) << "the programs of the machine are no cause beside it";
  EXPECT_EQ(verdict.findings[0].rule, "cpu-quota");
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 75 % of the standstill a limit of CPU time held up CRIU: /sys/fs/cgroup/cpu/kymod "
            "may use 0.05 CPUs.");
  EXPECT_EQ(verdict.findings[0].estimate_ns, (Range{250 * kOneMs, 625 * kOneMs}));
}

TEST(Causes, TheLimitMayBeThatOfTheTarget) {
  Facts facts = healthy_dump();
  facts.signals.target_quota_ns = 700 * kOneMs;
  facts.target_quota = {"/sys/fs/cgroup/pod", 1};
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 70 % of the standstill a limit of CPU time held up the target: /sys/fs/cgroup/pod "
            "may use 1 CPU.");
}

// "Other programs used the CPUs", of a restore into a cgroup whose quota held it up for half of the time.
TEST(Causes, TheLimitMayBeThatOfTheRestoredProcesses) {
  Facts facts = healthy_restore();
  facts.signals.cpu_wait_ns = 640 * kOneMs;
  facts.signals.cpu_ns = 100 * kOneMs;
  facts.signals.target_quota_ns = 600 * kOneMs;
  facts.target_quota = {"/sys/fs/cgroup/cpu/op", 0.1};
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 60 % of the restore a limit of CPU time held up the restored processes: "
            "/sys/fs/cgroup/cpu/op may use 0.1 CPUs.");
}

TEST(Causes, WhatALimitHeldUpWasNotTakenByOtherPrograms) {
  Facts facts = healthy_restore();
  facts.signals.cpu_wait_ns = 700 * kOneMs;
  facts.signals.cpu_ns = 100 * kOneMs;
  facts.signals.target_quota_ns = 300 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 2U);
  EXPECT_NEAR(verdict.findings[0].share, 0.4, 1e-9);
  EXPECT_EQ(verdict.findings[0].rule, "cpu-wait");
  EXPECT_EQ(verdict.findings[1].rule, "cpu-quota");
}

// The kernel adds up the times of all CPUs, and other programs may be in that cgroup.
TEST(Causes, ALimitCountsOnlyWhileCriuOrKymodHadNoCpu) {
  Facts facts = healthy_dump();
  facts.signals.criu_quota_ns = 1900 * kOneMs;
  facts.signals.socket_wait_ns = 0;
  facts.signals.cpu_wait_ns = 100 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
}

// Before CRIU, its runtime needs 650 ms.
Facts restored_container() {
  Facts facts = healthy_restore();
  facts.container = true;
  facts.phases = {{"prepare", 0, 50 * kOneMs, 0, "", false},
                  {"start CRIU", 50 * kOneMs, 700 * kOneMs, 0, "", false},
                  {"memory: reading pages", 700 * kOneMs, 1000 * kOneMs, 0, "", false}};
  return facts;
}

// podman needed 750 ms of a restore instead of 200, because the limit was that of kymod, which starts it. CRIU was in the cgroup
// of the container.
TEST(Causes, InARestoreTheLimitMayHoldUpWhatStartsCriu) {
  Facts facts = restored_container();
  facts.signals.cpu_ns = 200 * kOneMs;
  facts.signals.socket_wait_ns = 0;
  facts.signals.cpu_wait_ns = 10 * kOneMs;
  facts.signals.criu_quota_ns = 500 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-quota");
}

// podman and kymod took 70 % of a restore, and had as little of the CPUs as CRIU: the promise was a quarter of what came.
TEST(Causes, TheRuntimeOfARestoreMayHaveWaitedForACpuLikeCriu) {
  Facts facts = restored_container();
  facts.signals.cpu_wait_ns = 240 * kOneMs;
  facts.signals.cpu_ns = 100 * kOneMs;
  facts.signals.machine_ns = 1900 * kOneMs;
  const auto least = [&facts] {
    return static_cast<double>(explain(facts).findings.at(0).estimate_ns.value().first) / kOneMs;
  };
  EXPECT_NEAR(least(), 200, 0.1) << "CRIU waited for 240 of its 300 ms";
  facts.signals.machine_ns = 520 * kOneMs;  // others used 400 ms of it, and 20 ms are in doubt
  EXPECT_NEAR(least(), 600, 0.1);
}

// With kymod's autogroup at -20, the restore of a container took as long: its runtime had moved CRIU into its cgroup.
TEST(Causes, TheAdviceOnPriorityOfARestoredContainerIsThatOfItsCgroup) {
  Facts facts = restored_container();
  facts.signals.cpu_wait_ns = 600 * kOneMs;
  facts.kymod_group = {41, "/autogroup-1", 0};
  const auto advice = [&facts] { return explain(facts).findings.at(0).advice; };
  facts.priority = Priority::autogroup;
  EXPECT_EQ(advice(), "Other programs used the CPUs: pause them during the restore.");
  facts.priority = Priority::cgroup;
  EXPECT_NE(advice().find("during the restore, or give the container more weight, because"),
            std::string::npos);
}

// Scattered memory takes CRIU more CPU time for each GiB. The host was named for it.
TEST(Causes, PiecesOfMemoryAreNoFaultOfTheHost) {
  Facts facts = healthy_dump();
  facts.signals.cpu_ns = 500 * kOneMs;
  EXPECT_EQ(first_rule(facts), "host-memory");
  facts.shape.emplace();
  facts.shape->pages = facts.dump->pages_written;
  facts.shape->runs = 300'000;  // 210 ms
  for (const Cause& finding : explain(facts).findings) EXPECT_NE(finding.rule, "host-memory");
}

// On an idle machine, half of the standstill of a small dump was blamed on other programs: CRIU, the target and kymod had
// waited for each other.
TEST(Causes, OtherProgramsAreNamedOnlyIfTheyHadCpuTime) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 500 * kOneMs;
  facts.signals.machine_ns = 500 * kOneMs;
  facts.signals.target_ns = 50 * kOneMs;
  facts.streaming = Streaming{.work_ns = 60 * kOneMs, .starved_ns = 50 * kOneMs};
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.machine_ns = 1230 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait");
  EXPECT_NEAR(explain(facts).findings[0].share, 0.5, 0.001);
}

// In the restore of 3,000 threads kymod took 30.9 s of CPU time in 20 s, to look at them, and other programs were blamed.
TEST(Causes, KymodIsNamedIfItUsedTheCpuItself) {
  Facts facts = healthy_restore();
  facts.cpus = 2;
  facts.signals.cpu_ns = 300 * kOneMs;
  facts.signals.cpu_wait_ns = 640 * kOneMs;
  facts.signals.machine_ns = 1900 * kOneMs;
  const auto advice = [&facts] { return explain(facts).findings.at(0).advice; };
  facts.signals.kymod_ns = 127 * kOneMs;
  EXPECT_TRUE(advice().starts_with("Other programs used the CPUs: pause them")) << advice();
  facts.signals.kymod_ns = 129 * kOneMs;  // a fifth of what was lacked
  facts.signals.kymod_looks_ns = 60 * kOneMs;
  EXPECT_TRUE(advice().starts_with(
      "kymod itself used a CPU for 13 % of the restore: kymo profile, with the PID of kymod, shows "
      "what for. Other programs used the CPUs, too: pause them"))
      << advice();
  facts.signals.kymod_ns = 900 * kOneMs;
  facts.signals.kymod_looks_ns = 800 * kOneMs;
  EXPECT_EQ(
      advice(),
      "kymod itself used a CPU for 90 % of the restore, mostly to look at CRIU and the target: "
      "start it with --no-inside.");
  facts.streaming.emplace();
  EXPECT_TRUE(advice().starts_with("kymod itself used a CPU for 80 %")) << advice();
  facts.signals.kymod_looks_ns = 20 * kOneMs;
  EXPECT_TRUE(advice().starts_with("Other programs")) << "it took the stream, as it must";
}

// 70 ms of 190 were blamed on the container runtime, which had nothing to do.
TEST(Causes, LockingTheNetworkIsCriusOwnWork) {
  Facts facts = healthy_dump();
  facts.container = true;
  facts.phases[5].name = facts.phases[6].name = "network";
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 850 * kOneMs;
  EXPECT_EQ(first_rule(facts), "network-lock");
  const auto network = [&facts] { return explain(facts).findings.at(0); };
  EXPECT_TRUE(network().advice.ends_with("the line network-lock skip in /etc/criu/runc.conf."));
  facts.container = false;
  EXPECT_TRUE(network().advice.ends_with("dump with --network-lock skip."));
  EXPECT_TRUE(network().estimate_ns);
  // It was advised for a dump with an open connection.
  facts.connections = true;
  EXPECT_EQ(network().advice, "");
  EXPECT_FALSE(network().estimate_ns);
}

// Six tmpfs of a container took 78 ms, and "saving 23 mappings" was told.
TEST(Causes, TheMountsOfAContainerAreNamed) {
  Facts facts = healthy_dump();
  facts.container = true;
  facts.phases[4].name = "mounts";
  const Window window = window_of(facts.phases, false);
  const std::uint64_t took = facts.phases[4].end_ns - facts.phases[4].begin_ns;
  ASSERT_GE(took, window.length_ns() / 5) << "the example must have a phase of this length";
  EXPECT_EQ(first_rule(facts), "mounts");
}

// An advice for the CPU promised 231 to 324 ms, and brought 567, because a second cause took the same time.
TEST(Causes, ThatOverlapArePromisedTogether) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 600 * kOneMs;
  EXPECT_EQ(explain(facts).estimate_ns, (Range{400 * kOneMs, 700 * kOneMs}));
  facts.signals.disk_wait_ns = 500 * kOneMs;
  const Verdict both = explain(facts);
  ASSERT_EQ(both.findings.size(), 2U);
  EXPECT_EQ(both.estimate_ns, (Range{150 * kOneMs, 700 * kOneMs}));
  EXPECT_EQ(both.lines[3].find("estimate"), std::string::npos) << both.lines[3];
  EXPECT_NE(
      both.lines[5].find(
          "(estimate of the standstill if all of this is done: 150 ms at best, 700 ms at worst)"),
      std::string::npos)
      << both.lines[5];
  EXPECT_EQ(to_json(both)["estimate_ns"], (nlohmann::json{150 * kOneMs, 700 * kOneMs}));
}

TEST(Causes, SaysWhoAnsweredLate) {
  Facts facts = healthy_dump();
  facts.phases[2].name = "kymod answers";
  facts.answering_ns = 1000 * kOneMs;
  facts.phases[2].end_ns = facts.phases[3].begin_ns = 230 * kOneMs;
  EXPECT_EQ(first_rule(facts), "late-answers");
  facts.answering_ns = 0;
  EXPECT_EQ(first_rule(facts), "") << "kymod was not asked yet: its script was started";
  facts.phases[2].name = "hooks";
  EXPECT_EQ(first_rule(facts), "hooks");
  facts.container = true;
  EXPECT_EQ(first_rule(facts), "hooks");
  facts.container = false;
  facts.recorded = false;
  EXPECT_EQ(first_rule(facts), "hooks");
  facts.phases[2].end_ns = facts.phases[3].begin_ns = 150 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "40 ms are no cause";
}

// A deadline ended a CRIU that somebody had stopped, and no word said so.
TEST(Causes, ACriuThatASignalStoppedIsNamed) {
  Facts facts = healthy_dump();
  facts.signals.stopped_ns = 99 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "9.9 % are no cause";
  facts.signals.stopped_ns = 700 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 70 % of the standstill CRIU itself was stopped by a signal (SIGSTOP).");
  facts.dump->freezing_time_us = 705'000;
  EXPECT_EQ(first_rule(facts), "criu-stopped")
      << "it was not the threads that could not be stopped";
}

// A CRIU that was stopped for 2 s was said to need 2.32 s to test the kernel.
TEST(Causes, ACriuThatIsStoppedOrHasNoCpuTestsNoKernel) {
  Facts facts = healthy_dump();
  facts.phases[0] = {"look at the kernel", 0, 100 * kOneMs, 0, "", false};
  facts.duration_ns = 800 * kOneMs;
  EXPECT_EQ(first_rule(facts), "kernel-probed");
  facts.signals.probe_held_ns = facts.signals.stopped_before_ns = 90 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].evidence,
            "Before the standstill, for 90 ms, CRIU itself was stopped by a signal (SIGSTOP).");
}

// Four busy programs, and the advice was that the program close some of its 32 files.
TEST(Causes, WhatTakesLongWithoutACpuIsNotBlamedOnTheProgram) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 500 * kOneMs;
  facts.shape = {1, 120, 400, 65'536, 34, 2};
  EXPECT_EQ(first_rule(facts), "many-files");
  facts.signals.cpu_wait_ns = 410 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "cpu-wait");
}

// Of 3,000 small shared mappings, which took 80 % of the time, no word was said.
TEST(Causes, ManySmallPiecesOfSharedMemoryAreNamed) {
  Facts facts = healthy_dump();
  facts.phases[4].name = "memory: shared memory";
  facts.dump->shpages_written = 3'000;
  facts.shape = {1, 3'100, 400, 65'536, 34, 2, 1, 3'000};
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_TRUE(verdict.findings[0].evidence.starts_with("Saving 3,000 shared mappings (and"))
      << verdict.findings[0].evidence;
  facts.dump->shpages_written = 3'000 * 100;
  EXPECT_NE(first_rule(facts), "many-files") << "it is their memory, and not their number";
}

// "kymod answered late", without a way to write less.
TEST(Causes, ASyncWaitsForTheDisk) {
  Facts facts = healthy_dump();
  facts.streaming.emplace();
  facts.phases[5] = {"sync", 400 * kOneMs, 1050 * kOneMs, 0, "", true};
  facts.phases[4].end_ns = 400 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence,
            "kymod waited for the disk for 66 % of the standstill, mostly until all images were on "
            "it, as --sync asks for.");
  EXPECT_NE(verdict.findings[0].also.find("--compression zstd"), std::string::npos);
}

// "No CPU was free", in a comparison of dumps that a limit held up.
TEST(Causes, WhatALimitHeldUpIsAShareOfItsOwn) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 900 * kOneMs;
  facts.signals.criu_quota_ns = 750 * kOneMs;
  for (const auto& [name, share] : explain(facts).shares) {
    if (name == "quota" || name == "no_cpu") {
      EXPECT_NEAR(share, name == "quota" ? 0.75 : 0.15, 1e-9) << name;
    }
  }
}

// "kymod itself did not run": it had answered at once, and an action script of the user slept.
TEST(Causes, AScriptOfTheUserIsNamedAndNotKymod) {
  Facts facts = healthy_restore();
  facts.phases[1].name = "hooks";
  facts.signals.kymod_gaps_ns = 0;
  facts.scripts = {"/tmp/x/slow.sh (in /root/.criu/default.conf)"};
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "hooks");
  EXPECT_EQ(verdict.findings[0].evidence,
            "CRIU waited for 85 % of the restore for the action script /tmp/x/slow.sh (in "
            "/root/.criu/default.conf).");
  EXPECT_EQ(verdict.findings[0].advice, "Make it faster, or take it out of CRIU's configuration.");
}

TEST(Causes, SaysThatKymodDidNotRunOnlyIfThatWasSeen) {
  Facts facts = healthy_restore();
  facts.phases[1].name = "kymod answers";
  facts.answering_ns = 1000 * kOneMs;
  facts.signals.kymod_gaps_ns = 900 * kOneMs;
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "CRIU waited for kymod for 85 % of the restore.");
  facts.signals.answer_gaps_ns = 600 * kOneMs;
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "CRIU waited for kymod for 85 % of the restore: kymod itself did not run.");
}

// The restore printed no cause, and the table "start CRIU 90 %".
TEST(Causes, AProgramOfCriuThatStartsSlowlyIsTheCause) {
  Facts facts = healthy_restore();
  facts.phases[1].name = "start CRIU";
  facts.program = "/usr/local/bin/criu";
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].rule, "criu-start");
  EXPECT_EQ(verdict.lines[2],
            "CRIU's program took 85 % of the restore to start: until then its log has no line.");
  EXPECT_TRUE(verdict.lines[3].starts_with("Find out what /usr/local/bin/criu does before that"));
  facts.phases[1].end_ns = facts.phases[2].begin_ns = 244 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts = healthy_dump();
  facts.phases[0].name = "start CRIU";
  facts.duration_ns = 390 * kOneMs;
  EXPECT_EQ(explain(facts).lines[2],
            "CRIU's program needed 100 ms, 26 % of the dump, to start (the phase \"start CRIU\").")
      << "no process stood still meanwhile";
}

// "No cause took a fifth of it. The largest: For 20 % ...".
TEST(Causes, SharesAreComparedAsTheyArePrinted) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 196 * kOneMs;
  EXPECT_TRUE(explain(facts).lines[2].starts_with("For 20 % of the standstill no CPU was free"))
      << explain(facts).lines[2];
  facts.signals.cpu_wait_ns = 194 * kOneMs;
  EXPECT_TRUE(
      explain(facts).lines[2].starts_with("No cause took a fifth of it. The largest: For 19 "));
}

// "For 69 % no CPU was free for CRIU (54 %) or kymod (23 %)."
TEST(Causes, PartsThatDoNotAddUpOverlap) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 540 * kOneMs;
  facts.signals.pipe_wait_ns = 230 * kOneMs;
  facts.streaming = {false, 240 * kOneMs, 0, 230 * kOneMs};
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "For 77 % of the standstill no CPU was free for CRIU (54 %) or kymod (23 %).");
  facts.signals.cpu_wait_ns = 544 * kOneMs;
  facts.streaming->starved_ns = 234 * kOneMs;
  facts.signals.pipe_wait_ns = 234 * kOneMs;
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "For 78 % of the standstill no CPU was free for CRIU (55 %) or kymod (23 %).");
  facts.signals.cpu_wait_ns = 540 * kOneMs;
  facts.streaming->starved_ns = 230 * kOneMs;
  facts.signals.pipe_wait_ns = 230 * kOneMs;
  facts.signals.machine_ns = 1560 * kOneMs;  // 1,380 ms of others: 69 % of two CPUs
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "For 69 % of the standstill no CPU was free for CRIU (54 %) or kymod (23 %), partly at "
            "the same time.");
}

TEST(Causes, BusyCpusAreNoCauseOfAStandstillInWhichNothingCanBeWon) {
  Facts facts;
  facts.restore = true;
  facts.duration_ns = 49 * kOneMs;
  facts.phases = {{"processes and files", 0, 49 * kOneMs, 0, "", false}};
  facts.signals.cpu_wait_ns = 30 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.duration_ns = facts.phases[0].end_ns = 50 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait");
}

}  // namespace
}  // namespace kymo::diagnosis
