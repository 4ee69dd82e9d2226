#include "checkpoint/diagnosis/verdict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "example_facts.h"

namespace kymo::diagnosis {
namespace {

TEST(Verdict, OfAnOrdinaryDumpSaysThatNothingStandsOut) {
  const Verdict verdict = explain(healthy_dump());
  EXPECT_EQ(verdict.lines, (std::vector<std::string>{
                               "The process stood still for 1 s of the 1.20 s that the dump took.",
                               "The longest phase, \"memory: writing pages\", took 60 % of the "
                               "standstill (256 MiB at 447 MB/s).",
                               "No cause stands out, so there is no advice to make it shorter."}));
  EXPECT_EQ(verdict.shortly, "nothing stands out");
  EXPECT_EQ(verdict.causes_from, 3U) << "none of the lines names a cause";
  EXPECT_EQ(verdict.frozen_ns, 1000 * kOneMs);
}

// CRIU looks only every 100 ms whether the freezer of cgroup version 1 has stopped all processes. They
// stand still meanwhile.
TEST(Verdict, TheTimeOfFreezingIsPartOfTheStandstill) {
  criu::DumpStats stats;
  stats.freezing_time_us = 101'000;
  stats.frozen_time_us = 146'000;
  EXPECT_EQ(stood_still_ns(stats, healthy_dump().phases), 247 * kOneMs);
  EXPECT_EQ(stood_still_ns({}, healthy_dump().phases), 1000 * kOneMs)
      << "without statistics, as after a failed dump, the phases count";
  EXPECT_EQ(stood_still_ns({}, {}), 0U);
}

// A small dump showed a "prepare" of half its time, and no word about it.
TEST(Verdict, SaysWhatKymodDidIfItNeededMuchOfTheTimeBeforeCriuStarted) {
  Facts facts = healthy_dump();
  facts.duration_ns = 410 * kOneMs;  // of which "prepare" took 24.4 %
  EXPECT_EQ(explain(facts).lines.size(), 3U);
  facts.duration_ns = 390 * kOneMs;
  EXPECT_EQ(explain(facts).lines[2],
            "Before CRIU was started, kymod needed 100 ms, 26 % of the dump, to check and record "
            "it, while the process ran on (the phase \"prepare\"): kymo dump -v shows each step.");
  facts.signals.disk_wait_ns = 810 * kOneMs;
  EXPECT_EQ(explain(facts).causes_from, 3U) << "usual for a small dump, so it is no cause";
  Facts restore = healthy_restore();
  restore.duration_ns = 100 * kOneMs;
  restore.phases.pop_back();  // "finish"
  EXPECT_EQ(explain(restore).lines[2],
            "Before CRIU was started, kymod needed 50 ms, 50 % of the restore, to check the "
            "request and to verify the images (the phase \"prepare\"): kymo restore -v shows each "
            "step.");
}

// "kymod needed 3.41 s to check and record it": for 3.01 s it had waited.
TEST(Verdict, SaysThatItWaitedForWhatTakesStacks) {
  Facts facts = healthy_dump();
  facts.duration_ns = 390 * kOneMs;
  facts.stacks_wait_ns = 50 * kOneMs;
  EXPECT_NE(explain(facts).lines[2].find("to check and record it"), std::string::npos);
  facts.stacks_wait_ns = 88 * kOneMs;
  EXPECT_EQ(explain(facts).lines[2],
            "Before CRIU was started, kymod needed 100 ms, 26 % of the dump: it waited 88 ms of "
            "that for the processes that take stacks (--profiling-stacks, --inside=offcpu).");
}

TEST(Verdict, SaysWhatTookMuchOfTheTimeAfterCriu) {
  Facts facts = healthy_dump();
  facts.duration_ns = 390 * kOneMs;
  facts.phases[0].name = "finish";  // 100 ms, and as much at the end
  EXPECT_EQ(explain(facts).lines[2],
            "After CRIU had done its work, kymod needed 200 ms, 51 % of the dump, to check and "
            "publish the outcome (the phase \"finish\"): kymo dump -v shows each step.");
  facts.phases[0].name = facts.phases[7].name = "container runtime";
  EXPECT_EQ(explain(facts).lines[2],
            "The container runtime went on for 200 ms, 51 % of the dump, after CRIU's last line in "
            "its log (the phase \"container runtime\").");
}

TEST(Verdict, HasSixLinesAtMost) {
  Facts facts = healthy_dump();
  facts.duration_ns = 390 * kOneMs;
  facts.signals.disk_wait_ns = 500 * kOneMs;
  facts.signals.cpu_wait_ns = 400 * kOneMs;
  facts.signals.steal_ns = 600 * kOneMs;
  const Verdict verdict = explain(facts);
  EXPECT_GE(verdict.findings.size(), 3U);
  EXPECT_EQ(verdict.lines.size(), 6U);
  EXPECT_EQ(verdict.lines[4].find(verdict.findings[1].evidence), std::string::npos);
  EXPECT_EQ(verdict.lines[5].find(verdict.findings[1].evidence), 0U) << verdict.lines[5];
}

// Each rule is tested slightly below and slightly above its threshold.
TEST(Verdict, SaysThatCriuWaitedForTheDisk) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 99 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.disk_wait_ns = 810 * kOneMs;
  EXPECT_EQ(first_rule(facts), "disk-wait");
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.causes_from, 2U);
  EXPECT_EQ(verdict.lines[2], "CRIU waited for the disk for 81 % of the standstill.");
  EXPECT_EQ(verdict.findings[0].advice, "Write the images to a faster disk or to a tmpfs.");
  facts.container = true;
  EXPECT_EQ(explain(facts).lines[3].find("--compression"), std::string::npos)
      << "--compression is only for plain processes";
}

// Memory that does not compress was promised the times of a faster disk: 0.7 to 1.6 s, and took 5.5 s.
TEST(Verdict, PromisesNoTimeOfCompression) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 810 * kOneMs;
  EXPECT_EQ(explain(facts).lines[3],
            "Write the images to a faster disk or to a tmpfs (estimate of the standstill then: 190 "
            "ms at best, 595 ms at worst). If the memory compresses well, --compression zstd "
            "writes less, too.");
  facts.zstd_share = 0.48;
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings[0].also,
            "Or write less: with --compression zstd, the images of an earlier dump took 48 % of "
            "the memory.");
  EXPECT_EQ(to_json(verdict)["findings"][0]["also"], verdict.findings[0].also);
  facts.zstd_share = 0.97;
  EXPECT_EQ(explain(facts).findings[0].also,
            "--compression zstd would not help: it saved 3 % of the memory in an earlier dump.");
  facts.zstd_share = 1.01;
  EXPECT_TRUE(explain(facts).findings[0].also.find("it saved nothing of the memory") !=
              std::string::npos);
  facts.restore = true;
  EXPECT_EQ(explain(facts).findings[0].also, "");
}

// It advised zstd although the history of the same job showed that zstd took longer.
TEST(Verdict, DoesNotAdviseZstdThatWasNoFaster) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 810 * kOneMs;
  facts.zstd_share = 0.48;
  facts.zstd_still_ns = 900 * kOneMs;
  facts.dump->freezing_time_us = 0;
  facts.dump->frozen_time_us = 800'000;
  EXPECT_EQ(explain(facts).findings[0].also,
            "--compression zstd would not help: with it, earlier dumps stood still for 900 ms, and "
            "this one for 800 ms.");
  facts.dump->frozen_time_us = 950'000;
  facts.plain_still_ns = 800 * kOneMs;  // of dumps whose images the page cache took, for example
  EXPECT_TRUE(
      explain(facts).findings[0].also.starts_with("Or write less: with --compression zstd"));
}

// "At worst" was less than the waits for a CPU, which no disk ends.
TEST(Verdict, AFasterDiskEndsNoWaitForACpu) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 400 * kOneMs;
  facts.earlier = WriteRates{9, 2e9, 4e9};
  const auto worst = [&facts] { return explain(facts).findings.at(0).estimate_ns->second; };
  EXPECT_LT(worst(), 540 * kOneMs);
  facts.signals.cpu_wait_ns = 380 * kOneMs;
  EXPECT_GE(worst(), 779 * kOneMs) << "of 1 s, 400 ms are no memory, and 380 ms waits for a CPU";
}

TEST(Verdict, SaysHowLittleCompressionSaved) {
  Facts facts = healthy_dump();  // of 256 MiB
  facts.streaming = {true, 100 * kOneMs, 600 * kOneMs};
  facts.image_bytes = 200U << 20U;
  EXPECT_EQ(explain(facts).findings.at(0).also, "");
  facts.image_bytes = 246U << 20U;
  EXPECT_EQ(explain(facts).findings.at(0).also, "Compression saved 4 % of the memory.");
}

TEST(Verdict, SaysThatCriuWaitedForACpu) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 149 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.cpu_wait_ns = 151 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait");
}

// "Nice=-20" gained nothing where the busy programs were in other sessions, and autogroups were on.
TEST(Verdict, TheAdviceOnPriorityIsThatOfTheMachine) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 600 * kOneMs;
  const auto advice = [&facts] { return explain(facts).findings.at(0).advice; };
  EXPECT_EQ(advice(),
            "Other programs used the CPUs: pause them during the dump, or give kymod, which starts "
            "CRIU, a higher priority.");
  facts.priority = Priority::nice;
  EXPECT_NE(advice().find("set Nice=-20 in kymod's systemd unit."), std::string::npos);
  facts.priority = Priority::autogroup;
  facts.kymod_group = {41, "/autogroup-1", 0};
  EXPECT_NE(advice().find("that of kymod: echo -20 > /proc/41/autogroup (it is at 0; "),
            std::string::npos);
  facts.priority = Priority::cgroup;
  EXPECT_NE(advice().find("set CPUWeight=10000 in kymod's systemd unit"), std::string::npos);
  EXPECT_EQ(advice().find("containerd"), std::string::npos);
  facts.container = true;
  EXPECT_EQ(advice().find("containerd"), std::string::npos) << "kymod starts runc and podman";
  facts.by_containerd = true;
  EXPECT_TRUE(advice().ends_with("or give containerd, which starts CRIU, a higher priority."));
}

// It named "$(pidof kymod)" again where kymod was at -20 already, and it was the target that had no CPU.
TEST(Verdict, TheAdviceOnAutogroupsIsForTheLargestShareThatCanBeRaised) {
  Facts facts = healthy_dump();
  facts.priority = Priority::autogroup;
  facts.kymod_group = {41, "/autogroup-1", 0};
  facts.target_group = {52, "/autogroup-2", 0};
  facts.signals.socket_wait_ns = 700 * kOneMs;
  facts.signals.target_cpu_wait_ns = 500 * kOneMs;
  facts.signals.cpu_wait_ns = 200 * kOneMs;
  const auto has = [&facts](const char* text) {
    return explain(facts).findings.at(0).advice.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("give the target a higher priority before that: echo -20 > /proc/52/autogroup"));
  facts.target_group.nice = -20;
  EXPECT_TRUE(has("that of kymod: echo -20 > /proc/41/autogroup"));
  facts.kymod_group.nice = -20;
  EXPECT_FALSE(has("echo"));
  EXPECT_TRUE(has("at -20 already"));
  facts.target_group.nice = 0;
  facts.signals.cpu_wait_ns = 600 * kOneMs;
  EXPECT_TRUE(has("echo -20 > /proc/52/autogroup")) << "kymod's is done";
  facts.kymod_group.nice = 5;
  EXPECT_TRUE(has("echo -20 > /proc/41/autogroup (it is at 5;"));
  facts.target_group.name = facts.kymod_group.name;
  facts.signals.cpu_wait_ns = 0;
  EXPECT_TRUE(has("echo -20 > /proc/41/autogroup")) << "both are in one session";
}

// On a machine with busy loops CRIU waited for 76 % of the time in a call on a socket: the target, whose memory it asked for,
// had no CPU.
TEST(Verdict, SaysThatTheTargetOrKymodWaitedForACpu) {
  Facts facts = healthy_dump();
  facts.signals.socket_wait_ns = 700 * kOneMs;
  facts.signals.target_cpu_wait_ns = 120 * kOneMs;
  facts.signals.pipe_wait_ns = 100 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "what the target did is no starvation";
  facts.streaming = {false, 150 * kOneMs, 0, 110 * kOneMs};
  Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "cpu-wait");
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 24 % of the standstill no CPU was free for CRIU (2 %), the target (12 %) or kymod "
            "(10 %).");
  facts.streaming.reset();
  facts.signals.target_cpu_wait_ns = 600 * kOneMs;
  verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence,
            "For 62 % of the standstill no CPU was free for CRIU (2 %) or the target (60 %).");
  facts.signals.cpu_wait_ns = 950 * kOneMs;
  EXPECT_EQ(explain(facts).findings[0].evidence,
            "For 100 % of the standstill no CPU was free for CRIU (95 %) or the target (60 %), "
            "partly at the same time.");
}

// The shares said "disk_wait": 0 while the lines said that kymod waited for the disk.
TEST(Verdict, TheSharesHaveWhatKymodDidForAStream) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 0;
  facts.signals.socket_wait_ns = 700 * kOneMs;
  facts.signals.target_cpu_wait_ns = 120 * kOneMs;
  facts.signals.pipe_wait_ns = 380 * kOneMs;
  facts.streaming = {false, 250 * kOneMs, 680 * kOneMs, 410 * kOneMs};
  const auto share = [](const Verdict& verdict, const std::string& name) {
    return to_json(verdict)["shares"].value(name, -1.0);
  };
  Verdict verdict = explain(facts);
  EXPECT_DOUBLE_EQ(share(verdict, "disk_wait"), 0);
  EXPECT_DOUBLE_EQ(share(verdict, "kymod_disk_wait"), 0.68);
  EXPECT_DOUBLE_EQ(share(verdict, "kymod_cpu_wait"), 0.38);
  EXPECT_DOUBLE_EQ(share(verdict, "target_cpu_wait"), 0.12);
  EXPECT_DOUBLE_EQ(share(verdict, "no_cpu"), 0.52);
  EXPECT_DOUBLE_EQ(share(verdict, "compression"), 0);
  facts.streaming->compressed = true;
  EXPECT_DOUBLE_EQ(share(explain(facts), "compression"), 0.25);
  facts.streaming.reset();
  verdict = explain(facts);
  EXPECT_DOUBLE_EQ(share(verdict, "kymod_disk_wait"), 0) << "kymod did nothing, and that is known";
  facts.recorded = false;
  EXPECT_DOUBLE_EQ(share(explain(facts), "kymod_disk_wait"), -1);
}

TEST(Verdict, TheLargestShareComesFirst) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 300 * kOneMs;
  facts.signals.cpu_wait_ns = 500 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 2U);
  EXPECT_EQ(verdict.findings[0].rule, "cpu-wait");
  EXPECT_EQ(verdict.shortly, "waited for a CPU");
  EXPECT_EQ(verdict.lines.size(), 6U);
}

TEST(Verdict, SaysHowLongItWouldTakeWithoutTheWait) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 600 * kOneMs;
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings[0].estimate_ns, (Range{400 * kOneMs, 700 * kOneMs}));
  EXPECT_TRUE(verdict.lines[3].ends_with(
      "(estimate of the standstill then: 400 ms at best, 700 ms at worst)."))
      << verdict.lines[3];
  EXPECT_EQ(to_json(verdict)["findings"][0]["estimate_ns"],
            (nlohmann::json{400 * kOneMs, 700 * kOneMs}));
}

// 300 MiB of shared memory were called "collect", without a rate. CRIU's statistics count them apart.
TEST(Verdict, SharedMemoryHasItsRateAndCountsAsMemory) {
  Facts facts = healthy_dump();
  facts.phases[3].name = "memory: shared memory";
  facts.phases[4].name = "memory: shared memory";
  facts.dump->pages_written = 1000;
  facts.dump->shpages_written = 76800;  // 300 MiB
  facts.signals.cpu_ns = 700 * kOneMs;
  EXPECT_EQ(explain(facts).lines[1],
            "The longest phase, \"memory: shared memory\", took 80 % of the standstill (300 MiB at "
            "393 MB/s).");
  EXPECT_EQ(first_rule(facts), "host-memory") << "2.3 s of CPU time for each GiB";
  facts.signals.cpu_ns = 0;
  facts.signals.disk_wait_ns = 500 * kOneMs;
  facts.earlier = WriteRates{9, 1024.0 * (1U << 20U), 4096.0 * (1U << 20U)};
  const auto estimate = explain(facts).findings[0].estimate_ns;
  ASSERT_TRUE(estimate);
  // 200 ms of other phases, and 304 MiB at 4 GiB/s.
  EXPECT_NEAR(static_cast<double>(estimate->first) / kOneMs, 274.2, 0.1);
}

// At log level 1 its time is in a phase with that of all else.
TEST(Verdict, UndividedSharedMemoryIsNotBlamedOnFiles) {
  Facts facts = healthy_dump();
  facts.phases = {{"freeze", 0, 10 * kOneMs, 0, "", true},
                  {"collect, processes and files", 10 * kOneMs, 1000 * kOneMs, 0, "", true}};
  facts.dump->pages_written = 1000;
  EXPECT_EQ(first_rule(facts), "many-files");
  facts.dump->shpages_written = 76800;
  EXPECT_EQ(first_rule(facts), "");
}

// 256 MiB at 336 MB/s. Other dumps of this machine wrote 1 GiB/s, and the fast ones 4 GiB/s.
TEST(Verdict, EstimatesWhatAnotherDiskGivesFromTheDumpsOfTheMachine) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 500 * kOneMs;
  facts.earlier = WriteRates{9, 1024.0 * (1U << 20U), 4096.0 * (1U << 20U)};
  const auto estimate = explain(facts).findings[0].estimate_ns;
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(static_cast<double>(estimate->first) / kOneMs, 462.5, 0.1);  // 62.5 ms of writing
  EXPECT_NEAR(static_cast<double>(estimate->second) / kOneMs, 650, 0.1);   // 250 ms of writing
  // If all dumps were as slow as this one, another disk saves only the time of waiting.
  facts.earlier = WriteRates{9, 400e6, 450e6};
  EXPECT_EQ(explain(facts).findings[0].estimate_ns, (Range{500 * kOneMs, 750 * kOneMs}));
}

TEST(Verdict, SaysThatTheHypervisorTookTheCpus) {
  Facts facts = healthy_dump();
  facts.signals.steal_ns = 210 * kOneMs;  // of the time of two CPUs, give or take two ticks
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.steal_ns = 230 * kOneMs;
  EXPECT_EQ(first_rule(facts), "steal");
}

TEST(Verdict, SaysThatCriuWaitedForHooks) {
  Facts facts = healthy_dump();
  facts.container = true;
  facts.phases[2].name = "hooks";  // this phase takes 90 ms
  EXPECT_EQ(first_rule(facts), "");
  facts.phases[2].end_ns = facts.phases[3].begin_ns = 230 * kOneMs;
  EXPECT_EQ(first_rule(facts), "hooks");
  EXPECT_NE(explain(facts).findings[0].advice.find("answers there itself, and runs no script"),
            std::string::npos);
  facts.recorded = facts.container = false;
  EXPECT_NE(explain(facts).findings[0].advice.find("Scripts of your own (action-script), if"),
            std::string::npos);
  facts.restore = facts.container = true;
  facts.phases[2].end_ns = facts.phases[3].begin_ns = 350 * kOneMs;
  EXPECT_NE(explain(facts).lines[3].find("hooks of the container's config.json"),
            std::string::npos);
}

TEST(Verdict, SaysThatTooMuchMemoryWaitedToBeWritten) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 600 * kOneMs;
  facts.signals.throttled_ns = 290 * kOneMs;
  EXPECT_EQ(first_rule(facts), "disk-wait");
  facts.signals.throttled_ns = 310 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U) << "the same time must not have two causes";
  EXPECT_EQ(verdict.findings[0].rule, "dirty-throttled");
  facts.signals.disk_wait_ns = facts.signals.throttled_ns = 99 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
}

TEST(Verdict, OfAStreamedDumpSaysThatKymodWaitedForTheDisk) {
  Facts facts = healthy_dump();
  facts.streaming = {true, 100 * kOneMs, 99 * kOneMs};
  EXPECT_EQ(first_rule(facts), "");
  facts.streaming->wait_ns = 300 * kOneMs;
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings.at(0).rule, "disk-wait");
  EXPECT_EQ(verdict.findings[0].evidence, "kymod waited for the disk for 30 % of the standstill.");
  EXPECT_EQ(verdict.findings[0].advice, "Write the images to a faster disk or to a tmpfs.");
}

TEST(Verdict, SaysThatItWaitedForCompression) {
  Facts facts = healthy_dump();
  facts.phases[5].name = "kymod answers";  // at the end CRIU waits until the stream is written
  facts.answering_ns = 1000 * kOneMs;
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 500 * kOneMs;
  facts.streaming = {true, 490 * kOneMs, 0};
  EXPECT_EQ(first_rule(facts), "late-answers");
  facts.streaming->work_ns = 510 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "compression");
  EXPECT_EQ(verdict.lines[2],
            "kymod compressed the images for 51 % of the standstill, and CRIU waited for it.");
  facts.streaming->codec = "zstd, level 15";
  EXPECT_EQ(explain(facts).lines[2],
            "kymod compressed the images (zstd, level 15) for 51 % of the standstill, and CRIU "
            "waited for it.");
  EXPECT_TRUE(explain(facts).findings[0].advice.starts_with("Use --compression-level 1"));
  facts.streaming->codec = "zstd, level 1";
  EXPECT_TRUE(explain(facts).findings[0].advice.starts_with("Use --compression none"));
  facts.phases[5].name = "processes and files";
  ASSERT_EQ(explain(facts).findings.size(), 1U)
      << "while it waits for the compression, CRIU is in this phase, which is no second cause";
  facts.phases[5].name = "kymod answers";
  facts.answering_ns = 1000 * kOneMs;
  facts.streaming->compressed = false;
  EXPECT_EQ(first_rule(facts), "late-answers");
}

TEST(Verdict, SaysThatMemoryCameBackFromSwap) {
  Facts facts = healthy_dump();
  facts.signals.target_disk_wait_ns = 300 * kOneMs;
  facts.signals.major_faults = 255;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.major_faults = 2000;
  EXPECT_EQ(first_rule(facts), "swap");
  facts.signals.disk_wait_ns = 300 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U)
      << "the disk of the images is not the cause, so a faster one would not help";
  facts.signals.disk_wait_ns = facts.signals.target_disk_wait_ns = 99 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
}

TEST(Verdict, SaysThatTheMachineHadTooLittleMemory) {
  Facts facts = healthy_dump();
  facts.signals.memory_wait_ns = 99 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.memory_wait_ns = 101 * kOneMs;
  EXPECT_EQ(first_rule(facts), "memory-pressure");
}

TEST(Verdict, SaysThatCriuAndTheTargetWokeEachOtherAcrossCpus) {
  Facts facts = healthy_dump();
  facts.dump->pages_written = 4 * 65536;  // 1 GiB, for which this CPU time is usual
  facts.signals.cpu_ns = 500 * kOneMs;
  facts.signals.target_ns = 150 * kOneMs;
  facts.signals.wakeups = 600;
  facts.phases[6].name = "network";  // in this phase, CRIU waits for something else
  // 260 ms are left: 1000 ms, less 500 of CPU time, 20, 10, 150 of the target, 10 of freezing and 50 of
  // the network.
  EXPECT_EQ(first_rule(facts), "cross-cpu");
  EXPECT_NEAR(explain(facts).findings[0].share, 0.26, 0.001);
  facts.signals.socket_wait_ns = 350 * kOneMs;  // the target worked for 150 ms of it
  EXPECT_NEAR(explain(facts).findings[0].share, 0.2, 0.001);
  facts.signals.socket_wait_ns = 290 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "CRIU did not wait long enough for the target";
  facts.signals.socket_wait_ns.reset();
  facts.signals.wakeups = 199;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.wakeups = 600;
  facts.signals.target_ns = 270 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.target_ns = 150 * kOneMs;
  facts.cpus = 1;
  EXPECT_EQ(first_rule(facts), "") << "there is no other CPU";
  facts.cpus = 2;
  facts.signals.target_ns.reset();
  EXPECT_EQ(first_rule(facts), "") << "without a figure for the target, no cause may be named";
}

TEST(Verdict, ProcessesThatAreRestoredSideBySideAreNotStarvedByOthers) {
  Facts facts = healthy_restore();
  facts.cpus = 2;
  facts.signals.cpu_wait_ns = 90'000 * kOneMs;  // the sum of a hundred processes
  facts.signals.cpu_ns = 1500 * kOneMs;
  facts.signals.machine_ns = 1700 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "other processes used only a tenth of the two CPUs";
  facts.signals.machine_ns = 2020 * kOneMs;  // 20 ms are uncertain
  EXPECT_EQ(first_rule(facts), "cpu-wait");
  EXPECT_NEAR(explain(facts).findings[0].share, 0.25, 0.001);
  EXPECT_EQ(explain(facts).findings[0].evidence,
            "For 25 % of the restore no CPU was free for CRIU or the processes that it restored.");
  EXPECT_NE(explain(facts).findings[0].advice.find("during the restore"), std::string::npos);
  EXPECT_EQ(to_json(explain(facts))["duration_ns"], 1000 * kOneMs);
}

TEST(Verdict, SaysThatKymodDidNotRun) {
  Facts facts = healthy_dump();
  facts.phases[2].end_ns = facts.phases[3].begin_ns = facts.phases[3].end_ns = 700 * kOneMs;
  facts.phases[4].begin_ns = 700 * kOneMs;  // so collecting takes 590 ms
  facts.signals.target_ns = 100 * kOneMs;
  facts.signals.kymod_gaps_ns = 0;
  EXPECT_EQ(first_rule(facts), "many-files");
  facts.signals.kymod_gaps_ns = 500 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U) << "collecting is not the cause";
  EXPECT_EQ(verdict.findings[0].rule, "late-answers");
  EXPECT_NEAR(verdict.findings[0].share, 0.5, 0.001);
  facts.streaming = Streaming{};
  EXPECT_EQ(
      explain(facts).findings[0].advice,
      "Find out why kymod did not run: it was stopped (SIGSTOP), or it got no CPU or no memory.")
      << "a faster disk does not help if kymod does not run";
}

// A freeze of 101 ms, a third of a standstill, was not mentioned: two waits took more.
TEST(Verdict, AThirdCauseIsToldFromAFifthOfTheTimeOn) {
  Facts facts = healthy_dump();
  facts.container = true;
  facts.signals.cpu_wait_ns = 500 * kOneMs;
  facts.signals.disk_wait_ns = 400 * kOneMs;
  facts.dump->freezing_time_us = 199'000;
  EXPECT_EQ(explain(facts).findings.size(), 3U);
  EXPECT_EQ(explain(facts).lines.size(), 6U);
  facts.dump->freezing_time_us = 333'000;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.lines.size(), 6U);
  EXPECT_TRUE(verdict.lines[5].starts_with("Stopping all threads (freeze) took 333 ms, 33 % "));
}

TEST(Verdict, ASmallCauseGetsNoLineBesideALargeOne) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 500 * kOneMs;
  // It is before the freeze, so it does not count.
  facts.phases.front().name = "look at the kernel";
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings.size(), 2U);
  EXPECT_EQ(verdict.lines.size(), 4U)
      << "the lines are the times, the phase, and the evidence and advice of the first finding";
}

TEST(Verdict, WhatWasNotLookedAtIsNotSaid) {
  Facts facts = healthy_dump();
  facts.signals = {};
  facts.dump.reset();
  const Verdict verdict = explain(facts);
  EXPECT_TRUE(verdict.findings.empty());
  EXPECT_EQ(verdict.frozen_ns, 1000 * kOneMs) << "known from the phases";
  facts.phases.clear();
  EXPECT_EQ(explain(facts).lines[0],
            "The dump took 1.20 s; how long the process stood still is not known.");
  EXPECT_EQ(explain(facts).lines[1], "The phases are not known: CRIU's log shows none.");
  EXPECT_EQ(explain(facts).lines[2], "No cause is known: what CRIU waited for was not measured.");
  facts.duration_ns = 0;
  EXPECT_EQ(explain(facts).lines[0], "How long the dump took is not known.");
}

TEST(Verdict, OfStatisticsAloneShowsNothingUnknownAsZero) {
  Facts facts = healthy_dump();
  facts.duration_ns = 0;
  facts.phases.clear();
  facts.signals = {};
  facts.dump->freezing_time_us = 400'000;
  facts.dump->frozen_time_us = 600'000;
  facts.shape = {1, 15'000, 100, 65'536};
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.lines[0],
            "The process stood still for 1 s; how long the whole dump took is not known.");
  ASSERT_EQ(verdict.findings.size(), 2U);
  EXPECT_TRUE(verdict.findings[0].evidence.starts_with(
      "Stopping all threads (freeze) took 400 ms, 40 % of the standstill: "));
  EXPECT_EQ(verdict.findings[1].evidence,
            "The memory consists of 15,000 mappings, and CRIU read each of them.");
  EXPECT_EQ(verdict.findings[1].advice, "Let the program map fewer, larger areas.");
}

TEST(Verdict, AsJsonHasTheEvidenceAndTheThreshold) {
  Facts facts = healthy_dump();
  facts.signals.cpu_wait_ns = 520 * kOneMs;
  const nlohmann::json json = to_json(explain(facts));
  EXPECT_EQ(json["findings"][0]["rule"], "cpu-wait");
  EXPECT_EQ(json["findings"][0]["threshold"], "15 % of the standstill, of 50 ms or more");
  EXPECT_DOUBLE_EQ(json["findings"][0]["share"].get<double>(), 0.52);
  EXPECT_EQ(json["short"], "waited for a CPU");
}

}  // namespace
}  // namespace kymo::diagnosis
