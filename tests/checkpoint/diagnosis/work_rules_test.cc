// The rules for times in which CRIU or the kernel worked. Each is tested slightly below and slightly above
// its threshold.
#include <gtest/gtest.h>

#include "checkpoint/diagnosis/verdict.h"
#include "example_facts.h"

namespace kymo::diagnosis {
namespace {

TEST(Verdict, SaysThatMemoryHadToBeSupplied) {
  Facts facts = healthy_dump();
  facts.signals.cpu_ns = 300 * kOneMs;  // 80 % of it copies memory, for 0.25 GiB
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.cpu_ns = 330 * kOneMs;
  EXPECT_EQ(first_rule(facts), "host-memory");
  // Copying took 264 ms. 125 ms are usual for this size.
  EXPECT_NEAR(explain(facts).findings[0].share, 0.139, 0.001);
}

// With that advice the disk would have more to write.
TEST(Verdict, DoesNotAdviseToWriteAFileToASlowDisk) {
  Facts facts = healthy_dump();
  facts.signals.cpu_ns = 330 * kOneMs;
  facts.signals.disk_wait_ns = 120 * kOneMs;
  EXPECT_EQ(explain(facts).findings.size(), 2U) << "the memory took more time than the disk";
  facts.signals.disk_wait_ns = 500 * kOneMs;
  Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "disk-wait");
  facts.signals.throttled_ns = 400 * kOneMs;
  verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "dirty-throttled");
}

TEST(Verdict, SaysThatFreezingWasSlow) {
  Facts facts = healthy_dump();
  facts.container = true;
  facts.dump->freezing_time_us = 49'000;
  EXPECT_EQ(first_rule(facts), "");
  facts.dump->freezing_time_us = 100'800;
  EXPECT_EQ(first_rule(facts), "slow-freeze");
  EXPECT_NE(explain(facts).lines[2].find("cgroups version 1"), std::string::npos);
}

TEST(Verdict, SaysThatItWasNotTheMemory) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns =
      750 * kOneMs;  // the phase takes 300 ms, and collecting takes 90 ms
  EXPECT_EQ(first_rule(facts), "");
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 700 * kOneMs;
  EXPECT_EQ(first_rule(facts), "many-files");
  EXPECT_EQ(
      explain(facts).lines[2],
      "Saving all but the memory (files, sockets, processes) took 42 % of the standstill. How many "
      "there are is not known.");
  EXPECT_EQ(explain(facts).lines[3], "Nothing is known that would shorten this.");
  facts.shape = {1, 125, 400, 65'536, 3'614, 10};  // 440 ms for 3,740 of them
  EXPECT_EQ(
      explain(facts).lines[2],
      "Saving 3,604 files (and 10 sockets, 125 mappings, 1 process) took 42 % of the standstill, "
      "about 113 µs for each file.");
  EXPECT_EQ(explain(facts).lines[3],
            "No option of CRIU makes this faster: let the program close what it does not need.");
  facts.shape = {2, 30, 400, 65'536, 1, 1};
  EXPECT_TRUE(
      explain(facts).lines[2].starts_with("Saving 2 processes (and 1 socket, 30 mappings) took"));
  EXPECT_TRUE(explain(facts).lines[2].ends_with(" for each of them."));
  EXPECT_TRUE(explain(facts).lines[3].starts_with("So few should take less: "));
  facts.log = "/dumps/web/work/dump.log";
  EXPECT_TRUE(
      explain(facts).lines[3].ends_with("two lines of CRIU's log (/dumps/web/work/dump.log)."));
  facts.shape = {1, 900, 400, 65'536, 900, 1};
  EXPECT_TRUE(explain(facts).lines[2].ends_with(" for each of them."));
}

// 3,000 threads were explained as "6,023 mappings", which take 200 ms without them.
TEST(Verdict, NamesWhatTookMostAndNotWhatThereIsMostOf) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 410 * kOneMs;
  facts.shape = {1, 6'023, 400, 65'536, 8, 0, 3'001};
  Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings.front().rule, "many-threads");
  EXPECT_EQ(verdict.shortly, "many threads");
  EXPECT_EQ(verdict.lines[2],
            "Saving 3,001 threads (and 8 files, 6,023 mappings, 1 process) took 71 % of the "
            "standstill, about 215 µs for each thread.");
  EXPECT_EQ(verdict.lines[3],
            "No option of CRIU makes this faster: let the program end threads that it does not "
            "need before it is dumped.");
  facts.shape->threads = 200;  // 119 ms, and the mappings 181
  verdict = explain(facts);
  EXPECT_EQ(verdict.findings.front().rule, "many-files");
  EXPECT_TRUE(verdict.lines[2].starts_with(
      "Saving 6,023 mappings (and 8 files, 200 threads, 1 process) took"))
      << verdict.lines[2];
}

TEST(Verdict, ManyThreadsAreStoppedAndRestoredOneByOne) {
  Facts facts = healthy_dump();
  facts.dump->freezing_time_us = 100'000;
  facts.shape = {1, 30, 400, 65'536, 8, 0, 100};
  EXPECT_NE(explain(facts).findings[0].evidence.find("some threads could not"), std::string::npos);
  facts.shape->threads = 1'001;
  EXPECT_TRUE(
      explain(facts).findings[0].evidence.ends_with(": CRIU stops the 1,001 threads one by one."));
  facts = healthy_restore();
  facts.phases[1].name = "processes and files";
  facts.shape = {1, 30, 400, 65'536, 8, 0, 319};
  EXPECT_EQ(first_rule(facts), "");
  facts.shape->threads = 1'001;
  EXPECT_EQ(first_rule(facts), "many-threads");
  EXPECT_EQ(explain(facts).findings[0].evidence,
            "Creating 1,001 threads took 85 % of the restore, about 849 µs for each.");
}

// Beside "for 51 % no CPU was free", the advice to look for a pause in CRIU's log was for nothing.
TEST(Verdict, FewThingsAreNoCauseIfAWaitExplainsTheTime) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 500 * kOneMs;
  facts.shape = {2, 30, 400, 65'536, 1, 1};
  facts.signals.cpu_wait_ns = 155 * kOneMs;
  ASSERT_EQ(explain(facts).findings.size(), 2U) << "that is less than a quarter of it";
  facts.signals.cpu_wait_ns = 510 * kOneMs;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "cpu-wait");
  facts.shape = {1, 125, 400, 65'536, 3'614, 10};
  EXPECT_EQ(explain(facts).findings.size(), 1U) << "CRIU worked on them for 13 %";
  facts.signals.cpu_wait_ns = 200 * kOneMs;
  EXPECT_EQ(explain(facts).findings.size(), 2U) << "so many files are a cause beside the wait";
}

TEST(Verdict, SaysThatTheKernelTookTheMemoryBack) {
  Facts facts = healthy_dump();
  facts.phases[6].begin_ns = facts.phases[5].end_ns = 850 * kOneMs;
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 800 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "the processes were not stopped";
  facts.ended = true;
  EXPECT_EQ(first_rule(facts), "memory-released");
}

TEST(Verdict, SaysThatTheKernelWasProbedFirst) {
  Facts facts = healthy_dump();
  facts.phases[0] = {"look at the kernel", 0, 19 * kOneMs, 0, "", false};
  EXPECT_EQ(first_rule(facts), "");
  facts.phases[0].end_ns = 59 * kOneMs;
  EXPECT_EQ(first_rule(facts), "") << "less than 5 % of the dump";
  facts.phases[0].end_ns = 100 * kOneMs;
  EXPECT_EQ(first_rule(facts), "kernel-probed");
  EXPECT_NE(explain(facts).findings[0].advice.find("mount -t tmpfs tmpfs /run"), std::string::npos);
  facts.kernel_known = true;
  EXPECT_NE(explain(facts).findings[0].advice.find("until the next boot"), std::string::npos);
  facts.signals.cpu_wait_ns = 200 * kOneMs;
  EXPECT_EQ(first_rule(facts), "cpu-wait") << "the cause that stops the process must come first";
}

// It was the headline, with advice that could not have saved more than this.
TEST(Verdict, ACauseOfLessThanAFifthIsNamedAndNotTheHeadline) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 150 * kOneMs;
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.shortly, "nothing stands out");
  EXPECT_EQ(verdict.lines.back(),
            "No cause took a fifth of it. The largest: CRIU waited for the disk for 15 % of the "
            "standstill.");
  EXPECT_EQ(verdict.causes_from, verdict.lines.size());
  facts.signals.disk_wait_ns = 200 * kOneMs;
  EXPECT_EQ(explain(facts).shortly, "waited for the disk");
}

// Nothing stood out of a restore of 9 s whose processes waited for 8 s until their memory was read.
TEST(Verdict, ARestoreWaitsForTheDiskIfItsProcessesDo) {
  Facts facts = healthy_restore();
  facts.signals.disk_wait_ns = 10 * kOneMs;
  facts.signals.target_disk_wait_ns = facts.duration_ns * 8 / 10;
  const Verdict verdict = explain(facts);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].rule, "disk-wait");
  EXPECT_NEAR(verdict.findings[0].share, 0.8, 0.001);
  EXPECT_TRUE(verdict.findings[0].advice.starts_with("Read the images, and the files"));
  // Of a dump, the disk that the target waits for is not that of the images.
  facts = healthy_dump();
  facts.signals.target_disk_wait_ns = 800 * kOneMs;
  EXPECT_NE(explain(facts).lines[1].find("longest phase"), std::string::npos);
  EXPECT_EQ(explain(facts).findings.size(), 0U);
}

// A dump that was ended by its deadline on a slow disk had no verdict.
TEST(Verdict, OfARequestThatDidNotSucceedSaysWhatItWaitedForWithoutAnEstimate) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 900 * kOneMs;
  facts.dump.reset();
  ASSERT_TRUE(explain(facts).findings.at(0).estimate_ns);
  facts.ending = "ran out of time";
  Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.lines[0],
            "The dump ran out of time after 1.20 s; the process stood still for 1 s of that.");
  EXPECT_EQ(verdict.findings.at(0).rule, "disk-wait");
  EXPECT_EQ(verdict.findings[0].evidence, "CRIU waited for the disk for 90 % of the standstill.");
  EXPECT_FALSE(verdict.findings[0].estimate_ns);
  // Nothing stood still yet.
  for (Phase& phase : facts.phases) phase.frozen = false;
  facts.ending = "was cancelled";
  verdict = explain(facts);
  EXPECT_EQ(verdict.lines[0],
            "The dump was cancelled after 1.20 s, before the process was stopped.");
  EXPECT_EQ(verdict.findings.at(0).evidence, "CRIU waited for the disk for 75 % of the dump.");
  // CRIU was not started.
  facts.phases = {{"prepare", 0, 1200 * kOneMs, 0, "", false}};
  facts.signals = {};
  facts.unbegun = "verify images";
  facts.restore = true;
  verdict = explain(facts);
  EXPECT_EQ(verdict.lines[0], "The restore was cancelled after 1.20 s.");
  EXPECT_EQ(verdict.lines.back(),
            "CRIU was not started. The last step before was \"verify images\".");
}

TEST(Verdict, KymodWaitsForTheDiskOfARestoreThatItStreams) {
  Facts facts = healthy_restore();
  facts.streaming = Streaming{.compressed = true, .wait_ns = 700 * kOneMs};
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "kymod waited for the disk for 70 % of the restore.");
}

TEST(Verdict, NamesTheLongestPauseOfTheLogIfFewThingsTookLong) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 500 * kOneMs;
  facts.shape = {1, 20, 10, 100};
  facts.log = "/c/work/dump.log";
  facts.longest_pause = {480'000, "Dumping opened files", "30 fdinfo"};
  EXPECT_EQ(
      explain(facts).findings.at(0).advice,
      "So few should take less: the longest pause in CRIU's log (/c/work/dump.log), 480 ms, is "
      "between \"Dumping opened files\" and \"30 fdinfo\": find out what holds CRIU up there.");
}

TEST(Verdict, OfARestoreSaysThatPageFaultsTookTheTime) {
  Facts facts = healthy_restore();
  EXPECT_EQ(explain(facts).lines.front(), "The restore took 1 s.");
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.faults = 131'150;
  EXPECT_EQ(first_rule(facts), "page-faults");
  facts.signals.faults = 10 * 131'150;
  EXPECT_NEAR(explain(facts).findings[0].share, 0.85, 0.001)
      << "not longer than the pages were read";
}

TEST(Verdict, SaysThatCopyingTookTheCpu) {
  Facts facts = healthy_dump();
  facts.dump->pages_written = 4 * 65536;  // 1 GiB
  facts.signals.cpu_ns = 590 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.signals.cpu_ns = 700 * kOneMs;
  EXPECT_EQ(first_rule(facts), "copying");
  facts.dump->pages_written /= 4;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].rule, "host-memory") << "it explains why copying took so long";
}

TEST(Verdict, SaysThatKymodCopiedAStream) {
  Facts facts = healthy_dump();
  facts.dump->pages_written = 4 * 65536;  // 1 GiB
  facts.streaming = {false, 600 * kOneMs, 0, 160 * kOneMs, ""};
  EXPECT_EQ(first_rule(facts), "") << "kymod used the CPU for 44 %, CRIU for 15 %";
  facts.streaming->starved_ns = 140 * kOneMs;
  EXPECT_EQ(first_rule(facts), "copying");
  EXPECT_NE(explain(facts).lines[2].find("CRIU and kymod used a CPU for 61 %"), std::string::npos);
  facts.dump->pages_written /= 4;
  EXPECT_EQ(first_rule(facts), "host-memory");
  facts.streaming->compressed = true;
  EXPECT_EQ(first_rule(facts), "compression");
}

TEST(Verdict, SaysThatThereAreManyMappings) {
  Facts facts = healthy_dump();
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 700 * kOneMs;
  facts.shape = {1, 9'999, 100, 65'536};
  EXPECT_EQ(first_rule(facts), "many-files");
  facts.shape->mappings = 15'000;
  const Verdict verdict = explain(facts);
  ASSERT_EQ(verdict.findings.size(), 1U) << "the same time must not have two causes";
  EXPECT_EQ(verdict.findings[0].rule, "many-mappings");
  EXPECT_NE(verdict.findings[0].evidence.find("15,000 mappings"), std::string::npos);
  EXPECT_NE(verdict.findings[0].advice.find("--log-level 1"), std::string::npos);
  facts.container = true;
  EXPECT_EQ(explain(facts).findings[0].advice, "Let the program map fewer, larger areas.")
      << "the runtime of a container chooses the log level";
}

TEST(Verdict, SaysThatMemoryIsScattered) {
  Facts facts = healthy_dump();
  facts.streaming = Streaming{};
  facts.shape = {1, 30, 16'384, 65'536};
  EXPECT_EQ(first_rule(facts), "") << "pieces of 16 KiB take 9 % of the memory phases";
  facts.shape->runs = 40'000;
  EXPECT_EQ(first_rule(facts), "") << "that 256 MiB took 800 ms is not because of 40,000 pieces";
  for (Phase& phase : facts.phases) {
    phase.begin_ns /= 4;
    phase.end_ns /= 4;
  }
  facts.duration_ns /= 4;
  facts.dump->frozen_time_us = 249'000;
  EXPECT_EQ(first_rule(facts), "scattered-memory");
  const Cause finding = explain(facts).findings.at(0);
  EXPECT_NE(finding.evidence.find("40,000 separate pieces of 6.55 KiB"), std::string::npos)
      << finding.evidence;
  // 16 % of 250 ms, of which half to one and a half may be saved.
  ASSERT_TRUE(finding.estimate_ns);
  EXPECT_NEAR(static_cast<double>(finding.estimate_ns->second) / 1e6, 230, 3);
  EXPECT_NEAR(static_cast<double>(finding.estimate_ns->first) / 1e6, 190, 3);
  facts.streaming.reset();
  EXPECT_GT(explain(facts).findings.at(0).share, 2 * finding.share)
      << "CRIU writes each piece into a file";
  facts.shape->pages = facts.shape->runs = 8'191;
  EXPECT_NE(first_rule(facts), "scattered-memory")
      << "the dump has too little memory for this rule";
}

// The advice of this rule names --log-level 1, so its effect must be visible there.
TEST(Verdict, OfManyMappingsAtLogLevel1SaysHowLongTheyTookWithoutTheLog) {
  Facts facts = healthy_dump();
  facts.phases[2].name = kAllButMemoryPhase;  // 90 ms
  facts.phases[5].name = kAllButMemoryPhase;  // 50 ms
  facts.shape = {1, 15'000, 3, 9'000};
  const Verdict verdict = explain(facts);
  EXPECT_EQ(verdict.findings.at(0).rule, "many-mappings");
  EXPECT_NE(verdict.findings[0].evidence.find(
                "15,000 mappings, and CRIU read each of them: this took 34 % of the standstill."),
            std::string::npos)
      << verdict.findings[0].evidence;
  EXPECT_EQ(verdict.findings[0].advice, "Let the program map fewer, larger areas.");
}

TEST(Verdict, SaysWhichThreadWouldNotFreeze) {
  Facts facts = healthy_dump();
  facts.dump->freezing_time_us = 400'000;
  facts.sleeper = {77, "request_wait_answer"};
  facts.signals.freeze_disk_wait_ns = 190 * kOneMs;
  EXPECT_EQ(explain(facts).findings.at(0).evidence,
            "Stopping all threads (freeze) took 400 ms, 40 % of the standstill: some threads could "
            "not be "
            "stopped at once.");
  facts.signals.freeze_disk_wait_ns = 390 * kOneMs;
  EXPECT_EQ(
      explain(facts).findings.at(0).evidence,
      "Stopping all threads (freeze) took 400 ms, 40 % of the standstill: thread 77 waited for the "
      "program that serves a FUSE file system, and cannot be stopped then (uninterruptible sleep, "
      "state D, kernel function request_wait_answer).");
  facts.sleeper->where = "kernel_clone";
  Verdict verdict = explain(facts);
  EXPECT_NE(verdict.lines[2].find("waited for a child that it started by vfork or posix_spawn"),
            std::string::npos);
  EXPECT_NE(verdict.lines[3].find("once that child runs another program (exec) or ends"),
            std::string::npos);
  facts.sleeper->where = "some_function";
  EXPECT_NE(explain(facts).lines[2].find(
                "thread 77 could not be stopped (uninterruptible sleep, state D, kernel function "
                "some_function)."),
            std::string::npos);
  facts.sleeper->where = "";
  EXPECT_TRUE(explain(facts).lines[2].ends_with("(uninterruptible sleep, state D)."));
  facts.container = true;
  EXPECT_NE(explain(facts).lines[2].find("CRIU looks only every 100 ms"), std::string::npos)
      << "a thread that the freezer of cgroups version 1 has stopped is in the state D, too";
}

// kymod finds out the shape only then.
TEST(Verdict, TheShapeOfMemoryIsNeededWhereARuleSpeaksOfIt) {
  Facts facts = healthy_dump();
  facts.dump->pages_written = 200;
  facts.dump->shpages_written = 0;
  EXPECT_TRUE(needs_shape(facts)) << "all but writing the memory takes 400 ms";
  for (Phase& phase : facts.phases) {
    phase.begin_ns /= 10;
    phase.end_ns /= 10;
  }
  EXPECT_FALSE(needs_shape(facts)) << "40 ms, of little memory";
  facts.phases[2].end_ns += 20 * kOneMs;
  EXPECT_TRUE(needs_shape(facts)) << "this may be many mappings or files";
  facts.phases[2].end_ns -= 20 * kOneMs;
  facts.dump->pages_written = 8'192;
  EXPECT_TRUE(needs_shape(facts)) << "this much memory may be scattered";
  facts.dump.reset();
  EXPECT_TRUE(needs_shape(facts)) << "how much memory it was is not known";
  facts = healthy_restore();
  EXPECT_FALSE(needs_shape(facts));
  facts.phases[1].name = "processes and files";
  EXPECT_TRUE(needs_shape(facts)) << "850 ms may be many processes";
}

TEST(Verdict, OfARestoreSaysThatCreatingProcessesTookTheTime) {
  Facts facts = healthy_restore();
  facts.phases[1].name = "processes and files";  // this phase takes 850 ms
  facts.shape = {31, 6'000, 900, 9'000};
  EXPECT_EQ(first_rule(facts), "");
  facts.shape->processes = 201;
  EXPECT_EQ(
      explain(facts).findings.at(0).evidence,
      "Creating 201 processes with their files took 85 % of the restore, about 4.23 ms for each.");
  facts.restored.emplace();
  facts.restored->forking_time_us = 67'000;
  EXPECT_EQ(first_rule(facts), "many-processes");
  facts.signals.cpu_wait_ns = 900 * kOneMs;  // of all, while they waited for each other
  facts.signals.machine_ns = facts.signals.cpu_ns;
  EXPECT_EQ(first_rule(facts), "many-processes");
  EXPECT_EQ(
      explain(facts).findings[0].evidence,
      "Creating 201 processes with their files took 85 % of the restore, about 4.23 ms for each "
      "(all forks together took 67 ms).");
}

TEST(Verdict, WhatTakesLittleTimeIsNoCause) {
  Facts facts = healthy_dump();  // as if the process were small: all times are a tenth
  for (Phase& phase : facts.phases) {
    phase.begin_ns /= 10;
    phase.end_ns /= 10;
  }
  facts.duration_ns /= 10;
  facts.dump->pages_written = 100;
  facts.signals = {};
  // The phase takes 39 ms, and collecting 9 ms.
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 66 * kOneMs;
  EXPECT_EQ(first_rule(facts), "");
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 50 * kOneMs;
  EXPECT_EQ(first_rule(facts), "many-files");
}

// Before, --compression zstd was advised to who used --pre-dump, with which kymod refuses it.
TEST(Verdict, AdvisesZstdOnlyAsItCanBeGiven) {
  Facts facts = healthy_dump();
  facts.signals.disk_wait_ns = 810 * kOneMs;
  facts.unstreamed_by = "--pre-dump";
  EXPECT_EQ(explain(facts).findings[0].also,
            "If the memory compresses well, --compression zstd (without --pre-dump) writes less, "
            "too.");
  facts.zstd_share = 0.48;
  EXPECT_EQ(explain(facts).findings[0].also,
            "Or write less: with --compression zstd (without --pre-dump), the images of an earlier "
            "dump took 48 % of the memory.");
}

// Before, one dump advised none, and the next one, which took longer, advised zstd.
TEST(Verdict, DoesNotAdviseNoCompressionThatWasNoFaster) {
  Facts facts = healthy_dump();
  facts.phases[5].name = "kymod answers";  // at the end CRIU waits until the stream is written
  facts.answering_ns = 1000 * kOneMs;
  facts.phases[5].begin_ns = facts.phases[4].end_ns = 500 * kOneMs;
  facts.streaming = {true, 510 * kOneMs, 0};
  facts.streaming->codec = "zstd, level 1";
  facts.plain_still_ns = 5000 * kOneMs;
  EXPECT_TRUE(explain(facts).findings.at(0).advice.starts_with(
      "--compression none would not help: with it, earlier dumps stood still for 5"))
      << explain(facts).findings[0].advice;
  facts.plain_still_ns = 1;
  EXPECT_TRUE(explain(facts).findings.at(0).advice.starts_with("Use --compression none"));
}

}  // namespace
}  // namespace kymo::diagnosis
