#include "lens/report/checkpoint_stats.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lens/analysis/temp_folder.h"
#include "lens/report/explanation.h"

namespace kymo::report {
namespace {

CheckpointStats small() {
  CheckpointStats stats;
  stats.path = "/tmp/one";
  stats.image_files = 12;
  stats.image_bytes = 1 << 20U;
  stats.dump.emplace();
  stats.dump->frozen_time_us = 578'579;
  stats.dump->pages_written = 256;
  stats.dump_path = "/tmp/one/work/stats-dump";
  criu::ProcessPages process;
  process.pid = 42;
  process.command = "ch\x1burn";
  process.pages.present = 256;
  for (std::uint64_t i = 0; i < 3; ++i) {
    criu::MappingPages mapping;
    mapping.start = 0x1000 * i;
    mapping.end = mapping.start + 0x1000;
    mapping.name = i == 0 ? "[heap]" : "/lib/libc.so.6";
    mapping.pages.present = i == 0 ? 192 : 32;
    process.mappings.push_back(mapping);
  }
  stats.pages.pages = process.pages;
  stats.pages.processes.push_back(process);
  stats.notes.emplace_back("one thing was odd");
  return stats;
}

TEST(CheckpointStatsTest, APersonSeesWhatTookTheTimeAndWhoseThePagesAre) {
  EXPECT_EQ(text_of(small(), 1),
            R"(checkpoint  /tmp/one, 12 image files, 1 MiB

dump        /tmp/one/work/stats-dump
  FIGURE                  EXACT
  freezing_time_us            0    0 ns  until every task stood still
  frozen_time_us        578,579  579 ms  that they stood still
  memdump_time_us             0    0 ns  of it on memory, writing included
  memwrite_time_us            0    0 ns  of it writing pages
  pages_scanned               0     0 B  looked at
  pages_skipped_parent        0     0 B  left to the parent image
  pages_written             256   1 MiB  written

restore     no statistics are here: it was not restored here, or the restore failed

pages       256 in the images, 1 MiB
  PID  PROCESS, ITS MAPPINGS  PAGES              SHARE  IN PARENT
   42  ch?urn                   256    1 MiB  100.00 %
         [heap] 0-1000          192  768 KiB   75.00 %
         2 more                  64  256 KiB   25.00 %

note        one thing was odd
)");
}

TEST(CheckpointStatsTest, AProgramGetsEverything) {
  const nlohmann::json json = json_of(small());
  EXPECT_EQ(json["dump"]["frozen_time_us"], 578'579);
  EXPECT_TRUE(json["restore"].is_null());
  EXPECT_EQ(json["pages"], 256);
  EXPECT_EQ(json["processes"][0]["mappings"].size(), 3U);
  EXPECT_EQ(json["processes"][0]["mappings"][2]["start"], "0x2000");
}

// kymo explain said of itself what it would say, and told a slow freeze twice.
TEST(CheckpointStatsTest, CausesAreNotedHereAndLeftToTheExplanationThere) {
  CheckpointStats stats = small();
  stats.causes.emplace_back("freezing took 200 ms (kymo explain says why)");
  EXPECT_NE(text_of(stats, 1).find("note        freezing took 200 ms"), std::string::npos);
  EXPECT_EQ(json_of(stats)["notes"][0], stats.causes[0]);
  const Result<Explanation> explanation = explain_checkpoint(stats);
  ASSERT_TRUE(explanation);
  EXPECT_EQ(text_of(*explanation).find("kymo explain"), std::string::npos);
  EXPECT_NE(text_of(*explanation).find("one thing was odd"), std::string::npos);
}

TEST(CheckpointStatsTest, StatisticsThatCannotBeReadAreNotCalledMissing) {
  CheckpointStats stats = small();
  stats.dump.reset();
  EXPECT_NE(text_of(stats, 1).find("dump        its statistics cannot be read"), std::string::npos);
  stats.dump_path.clear();
  EXPECT_NE(text_of(stats, 1).find("no statistics are here: CRIU writes none"), std::string::npos);
}

TEST(CheckpointStatsTest, PathsAreSafeForATerminalAndSharedMemoryAloneIsShown) {
  CheckpointStats stats = small();
  stats.path = "/tmp/o\x1bne";
  stats.dump_path = stats.path + "/stats-dump";
  stats.pages.processes.clear();
  stats.pages.shared.push_back({5, {}});
  const std::string text = text_of(stats, 1);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_NE(text.find("[shared 5]"), std::string::npos) << text;
}

TEST(CheckpointStatsTest, ALogWithoutTimesAndATimeThatWrappedAreTold) {
  const tests::TempFolder folder;
  (void)folder.file("stats-dump",
                    std::string("\x40\x59\x10\x55\x06\x33\x09\x57\x10\0\0\0"
                                "\x0a\x0e\x08\x07\x10\x08\x18\0\x20\0\x28\0\x30\0\x38\0",
                                28));
  (void)folder.file("dump.log", "(00.000000) a\n(9000.0000) b\n");
  (void)folder.file("restore.log", "no times\n");
  const auto stats = read_checkpoint_stats(folder / "");
  ASSERT_TRUE(stats.ok()) << stats.error().message;
  std::string notes;
  for (const std::string& note : stats->notes) {
    notes += note + '\n';
  }
  ASSERT_TRUE(stats->dump) << notes;
  EXPECT_NE(notes.find("freezing_time_us may have wrapped"), std::string::npos) << notes;
  EXPECT_NE(notes.find("restore.log shows no phases"), std::string::npos) << notes;
}

TEST(CheckpointStatsTest, ADumpWhoseEndWasNotNotedIsNoCheckpoint) {
  const tests::TempFolder folder;
  (void)folder.file("dump.log", "(00.000000) a\n(00.100000) b\n");
  (void)folder.file("checkpoint.json", R"({"format_version": 1, "state": "started"})");
  const auto begun = explain_checkpoint(folder / "");
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_EQ(begun->lines.front().find("kymod has noted that this dump began, and not how it ended"),
            0U);
  EXPECT_NE(text_of(*read_checkpoint_stats(folder / ""), 1).find("it is no checkpoint"),
            std::string::npos);
  std::filesystem::create_directory(folder / "images");
  const auto whole = explain_checkpoint(folder / "");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->lines.front().find("kymod has noted"), std::string::npos);
}

}  // namespace
}  // namespace kymo::report
