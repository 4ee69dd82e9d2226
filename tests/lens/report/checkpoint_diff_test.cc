#include "lens/report/checkpoint_diff.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/diagnosis/phases.h"
#include "lens/analysis/temp_folder.h"

namespace kymo::report {
namespace {

CheckpointStats one(std::uint32_t frozen_us, std::uint64_t heap_pages) {
  CheckpointStats stats;
  stats.image_bytes = heap_pages * criu::kPageBytes;
  stats.image_files = 12;
  stats.dump.emplace();
  stats.dump->frozen_time_us = frozen_us;
  stats.dump->memwrite_time_us = 1000;
  stats.dump->pages_written = heap_pages;
  criu::LogPhases phases;
  phases.total_us = frozen_us + 20;
  phases.stretches.push_back({"freeze", 0, 20, 0, ""});
  phases.stretches.push_back({"memory", 20, phases.total_us, 0, ""});
  stats.dump_phases = phases;
  criu::ProcessPages process;
  process.command = "churn";
  criu::MappingPages mapping;
  mapping.name = "[heap]";
  mapping.pages.present = heap_pages;
  process.mappings.push_back(mapping);
  stats.pages.processes.push_back(process);
  return stats;
}

TEST(CheckpointDiffTest, WhatChangedMostComesFirstAndTimesBeforeSizes) {
  const auto differences = compare(one(1000, 256), one(1500, 512));
  ASSERT_EQ(differences.size(), 7U);
  // The frozen time, the phase of the memory, and the sum of all phases.
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(differences[i].unit, Unit::microseconds);
    EXPECT_EQ(differences[i].change(), 500);
  }
  EXPECT_EQ(differences[3].unit, Unit::bytes);
  EXPECT_EQ(differences[3].change(), 1 << 20);
  EXPECT_TRUE(differences[5].per_second);
  EXPECT_EQ(differences[6].name, "pages_written");
  EXPECT_EQ(differences[6].share(), 1.0);
}

TEST(CheckpointDiffTest, ASideThatWasNeverRestoredIsNoHundredPercentLess) {
  CheckpointStats restored = one(1000, 256);
  restored.restore.emplace();
  restored.restore->restore_time_us = 5000;
  const CheckpointStats never = one(1000, 256);
  EXPECT_TRUE(compare(restored, never).empty());
  EXPECT_EQ(one_sided_notes(restored, never),
            (std::vector<std::string>{"only A was restored: restores are not compared"}));
  EXPECT_TRUE(one_sided_notes(never, never).empty());
}

// "phases in all" was the time of CRIU's log, which is no part of what a person waited for.
TEST(CheckpointDiffTest, AllPhasesOfARecordedDumpCount) {
  const tests::TempFolder folder;
  std::array<CheckpointStats, 2> dumps{one(1000, 256), one(1000, 256)};
  for (std::uint64_t i = 0; i < dumps.size(); ++i) {
    const std::uint64_t prepared_ns = 1'000'000 * (i + 1);
    const std::vector<diagnosis::Phase> phases{{"prepare", 0, prepared_ns, 0, "", false},
                                               {"freeze", prepared_ns, 9'000'000, 0, "", true}};
    const nlohmann::json record{{"verdict", {{"lines", {"It took long."}}}},
                                {"phases", diagnosis::to_json(phases)}};
    const std::string name = i == 0 ? "a" : "b";
    static_cast<void>(folder.file(name + "/checkpoint.json", record.dump()));
    dumps.at(i).path = folder / name;
  }
  const auto differences = compare(dumps[0], dumps[1]);
  ASSERT_EQ(differences.size(), 2U) << "both took 9 ms in all";
  for (const Difference& difference : differences) {
    const double sign = difference.name == "phase: prepare" ? 1 : -1;
    EXPECT_EQ(difference.change(), sign * 1000) << difference.name;
  }
}

TEST(CheckpointDiffTest, TheSameDiffersInNothing) {
  EXPECT_TRUE(compare(one(1000, 256), one(1000, 256)).empty());
  EXPECT_EQ(text_of({"/a", "/b", {"In words."}, {}, {}}, 5),
            "A  /a\nB  /b\nIn words.\nnothing differs\n");
}

TEST(CheckpointDiffTest, WhatOnlyOneHasIsShownAsMissing) {
  CheckpointStats bare = one(1000, 256);
  bare.dump_phases.reset();
  const auto differences = compare(bare, one(1000, 256));
  ASSERT_EQ(differences.size(), 3U);
  EXPECT_FALSE(differences.front().before.has_value());
  EXPECT_FALSE(differences.front().share().has_value());
  const std::string text = text_of({"/a", "/b", {}, {}, differences}, 1);
  EXPECT_NE(text.find("phases in all"), std::string::npos) << text;
  EXPECT_NE(text.find("and 2 more"), std::string::npos) << text;
  EXPECT_TRUE(json_of({"/a", "/b", {}, {}, differences})["differences"][0]["a"].is_null());
}

}  // namespace
}  // namespace kymo::report
