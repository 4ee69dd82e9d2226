#include "report/checkpoint_stats.h"

#include <gtest/gtest.h>

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

restore     no statistics: it was not restored, or elsewhere

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

}  // namespace
}  // namespace kymo::report
