#include "lens/analysis/metadata.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/json_text.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/stats_members.h"

namespace kymo::analysis {
namespace {

using StatsWords = std::array<std::uint64_t, sizeof(ProfilerStats) / sizeof(std::uint64_t)>;

// Each figure has a different value. So the test finds a figure that is not written, not read, or
// read into another one.
TEST(MetadataTest, NoFigureOfTheRecorderIsLostBetweenWriterAndReader) {
  StatsWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) words.at(i) = 1000 + i;
  auto written = std::bit_cast<ProfilerStats>(words);
  written.timing_error_max_ns = 5000;  // the maximum: no percentile may be above it
  written.sample_window_ns = 0;        // only a recording in gVisor's format has this figure
  const nlohmann::json json{{"format_version", 1}, {"stats", describe_stats(written)}};
  const Result<Metadata> read = parse_metadata(json_text(json), "a.meta.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read->stats.has_value());
  EXPECT_EQ(std::bit_cast<StatsWords>(*read->stats), std::bit_cast<StatsWords>(written));
}

TEST(MetadataTest, FiguresThatAreNotKnownAreNotWritten) {
  ProfilerStats stats;
  stats.spin_ns = 5;
  const nlohmann::json json = describe_stats(stats);
  EXPECT_TRUE(json.contains("timing_error_ns")) << "it is also written if it is 0";
  EXPECT_TRUE(json.contains("spin_ns"));
  EXPECT_FALSE(json.contains("wakeup_latency_ns"));
  EXPECT_FALSE(json.contains("rows_on_time"));
  EXPECT_FALSE(json.contains("timing_error_p50_ns"));
}

TEST(MetadataTest, TheFormatsPageHasEveryFigureOfTheRecorder) {
  std::ostringstream page;
  page << std::ifstream(std::string(KYMO_SOURCE_DIR) + "/docs/formats.md").rdbuf();
  for (const StatsMember& figure : kStatsMembers) {
    const std::string name = std::string("`") + figure.name + "`";
    EXPECT_NE(page.str().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace kymo::analysis
