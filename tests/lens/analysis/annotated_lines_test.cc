#include "lens/analysis/annotated_lines.h"

#include <gtest/gtest.h>

#include <string>

#include "lens/analysis/quality.h"
#include "lens/analysis/summary.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

// The same bytes as src/recorder/sampling writes (tests/recorder/sampling/files/annotated_sink_test.cc). The
// checksums come from zlib.
std::string lossy(const std::string& text) {
  char sum[16];
  std::snprintf(sum, sizeof sum, "\t0x%x\n", adler32(text));
  return "GVISOR_METRICS\t" + text + sum;
}

constexpr const char* kStats =
    "STATS\t{\"collection_rate\":10,\"cheap_start_nanos\":100,\"cheap_last_collection_nanos\":150,"
    "\"total_snapshots\":3,\"total_sleep_timing_error\":9}";

TEST(AnnotatedRecording, PlainIsReadWithItsMetadata) {
  const tests::TempFolder folder;
  auto summary = summarize(
      folder.file("run",
                  "META\ta\t{\"name\":\"a\",\"cumulative\":true,\"description\":\"As\"}\n"
                  "META\tb_ns\t{\"fields\":[{\"fieldName\":\"call\",\"allowedValues\":[\"x\"]}]}\n"
                  "START_TIME\t77\nTime (ns)\ta\tb_ns[x]\n1\t5\t18446744073709551615\n11\t6\t3\n" +
                      std::string(kStats) + "\n"));
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->rows, 2U);
  ASSERT_EQ(summary->columns.size(), 2U);
  EXPECT_EQ(summary->columns[0].info.kind, Kind::counter);
  EXPECT_EQ(summary->columns[0].info.help, "As");
  EXPECT_EQ(summary->columns[1].max, UINT64_MAX);
  EXPECT_EQ(summary->columns[1].info.unit, Unit::nanoseconds);
  ASSERT_EQ(summary->columns[1].info.fields.size(), 1U);
  EXPECT_EQ(summary->columns[1].info.fields[0].second, "x");
  const Metadata& metadata = *summary->recording.metadata;
  EXPECT_EQ(metadata.start_unix_ns, 77);
  EXPECT_EQ(metadata.interval_ns, 10U);
  EXPECT_EQ(metadata.stats->ticks_due, 5U);
  EXPECT_EQ(metadata.stats->missed_late, 2U);
  EXPECT_TRUE(summary->left_out.empty());
}

TEST(AnnotatedRecording, TicksThatWereMissedWhileTheCollectorSleptAreOfAFullRing) {
  const tests::TempFolder folder;
  const auto summary = summarize(
      folder.file("run",
                  "META\ta\t{\"cumulative\":true}\nSTART_TIME\t77\nTime (ns)\ta\n1\t5\n91\t6\n"
                  "STATS\t{\"collection_rate\":10,\"cheap_start_nanos\":100,"
                  "\"cheap_last_collection_nanos\":200,\"total_snapshots\":2,"
                  "\"num_backoff_sleeps\":3,\"total_backoff_sleep\":65}\n"));
  ASSERT_TRUE(summary) << summary.error().message;
  const ProfilerStats& stats = *summary->recording.metadata->stats;
  EXPECT_EQ(stats.ticks_due, 10U);
  EXPECT_EQ(stats.missed_ring_full, 6U);
  EXPECT_EQ(stats.missed_late, 2U);
  bool advised = false;
  for (const Verdict& verdict : judge(*summary)) {
    advised =
        advised || verdict.text.find("the ring was full: give it more slots") != std::string::npos;
  }
  EXPECT_TRUE(advised);
}

TEST(AnnotatedRecording, LossyIsFoundAmongOtherLinesAndVerified) {
  const tests::TempFolder folder;
  std::string damaged = lossy("30\t3");
  damaged[damaged.find('3')] = '4';
  const std::string log = "[info] starting\n\n" + lossy("START_TIME\t77") +
                          lossy("Time (ns)\ta\tChecksum") + "\n[warn] GVISOR is no prefix\n" +
                          lossy("10\t1") + "[torn" + lossy("20\t2") + damaged + lossy("40\t4") +
                          "GVISOR_METRICS\t50\t5\n" + lossy(kStats) +
                          "\nGVISOR_METRICS\tADLER32\t0x1\n[info] bye\n";
  auto summary = summarize(folder.file("kymod.log", log));
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->rows, 3U);
  EXPECT_EQ(summary->columns[0].last, 4U);
  const auto sentences = summary->left_out.sentences();
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0], "line 9: its checksum does not match");
  EXPECT_EQ(sentences[1], "line 11: it has no checksum");
  bool told = false;
  for (const std::string& note : summary->recording.notes) {
    told = told || note.find("the log has lost some") != note.npos;
  }
  EXPECT_TRUE(told);
}

TEST(AnnotatedRecording, ALogWithoutARecordingIsRefused) {
  const tests::TempFolder folder;
  const auto summary = summarize(folder.file("kymod.log", "[info] a\n[info] b\n"));
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("its first line is \"[info] a\""), std::string::npos);
}

}  // namespace
}  // namespace kymo::analysis
