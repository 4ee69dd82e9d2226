#include "checkpoint/criu/drive/stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <span>

#include "checkpoint/criu/images/image_bytes.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

constexpr std::uint32_t kService = 0x55105940;
constexpr std::uint32_t kStats = 0x57093306;

// stats_entry{dump{1:100000 2:300 3:7 4:2^32-1 5:1000 6:0 7:999 9:5}} in protobuf's wire format.
const std::vector<std::uint8_t> kDump = {0x0a, 25,                            //
                                         0x08, 0xa0, 0x8d, 0x06,              //
                                         0x10, 0xac, 0x02,                    //
                                         0x18, 0x07,                          //
                                         0x20, 0xff, 0xff, 0xff, 0xff, 0x0f,  //
                                         0x28, 0xe8, 0x07,                    //
                                         0x30, 0x00,                          //
                                         0x38, 0xe7, 0x07,                    //
                                         0x48, 0x05};
// stats_entry{restore{1:11 2:12 3:13 4:14 5:15}}
const std::vector<std::uint8_t> kRestore = {0x12, 10, 0x08, 11, 0x10, 12,
                                            0x18, 13, 0x20, 14, 0x28, 15};

std::vector<std::byte> image(const std::vector<std::uint8_t>& message) {
  return ImageBytes().word(kService).word(kStats).message(message).bytes();
}

std::string dump_error(const std::vector<std::byte>& bytes) {
  const Result<DumpStats> stats = parse_dump_stats(bytes, "stats-dump");
  return stats ? "" : stats.error().message;
}

TEST(StatsTest, ReadsADump) {
  const Result<DumpStats> stats = parse_dump_stats(image(kDump), "stats-dump");
  ASSERT_TRUE(stats.ok()) << stats.error().message;
  EXPECT_EQ(stats->freezing_time_us, 100'000U);
  EXPECT_EQ(stats->frozen_time_us, 300U);
  EXPECT_EQ(stats->memdump_time_us, 7U);
  EXPECT_EQ(stats->memwrite_time_us, 4'294'967'295U);
  EXPECT_EQ(stats->pages_scanned, 1000U);
  EXPECT_EQ(stats->pages_skipped_parent, 0U);
  EXPECT_EQ(stats->pages_written, 999U);
  EXPECT_EQ(stats->pages_lazy, 5U);
  EXPECT_FALSE(stats->irmap_resolve_us.has_value());
  EXPECT_FALSE(stats->shpages_written.has_value());
}

TEST(StatsTest, ReadsARestore) {
  const Result<RestoreStats> stats = parse_restore_stats(image(kRestore), "stats-restore");
  ASSERT_TRUE(stats.ok()) << stats.error().message;
  EXPECT_EQ(stats->pages_compared, 11U);
  EXPECT_EQ(stats->pages_skipped_cow, 12U);
  EXPECT_EQ(stats->forking_time_us, 13U);
  EXPECT_EQ(stats->restore_time_us, 14U);
  EXPECT_EQ(stats->pages_restored, 15U);
}

TEST(StatsTest, ReadsAnOldImageWithoutTheFirstWord) {
  const auto old = ImageBytes().word(kStats).message(kDump).bytes();
  const Result<DumpStats> stats = parse_dump_stats(old, "stats-dump");
  ASSERT_TRUE(stats.ok()) << stats.error().message;
  EXPECT_EQ(stats->pages_written, 999U);
}

TEST(StatsTest, AnImageCutAnywhereIsRefusedWithTheOffset) {
  const std::vector<std::byte> whole = image(kDump);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<DumpStats> stats = parse_dump_stats(std::span(whole).first(size), "stats-dump");
    ASSERT_FALSE(stats.ok()) << size;
    EXPECT_EQ(stats.error().code, Code::data_loss) << stats.error().message;
    EXPECT_NE(stats.error().message.find("at byte"), std::string::npos) << stats.error().message;
    EXPECT_EQ(stats.error().message.find('\n'), std::string::npos);
  }
}

TEST(StatsTest, RefusesTheOtherKind) {
  EXPECT_NE(dump_error(image(kRestore)).find("no statistics of a dump"), std::string::npos);
  const Result<RestoreStats> stats = parse_restore_stats(image(kDump), "stats-restore");
  ASSERT_FALSE(stats.ok());
  EXPECT_EQ(stats.error().code, Code::invalid_argument);
}

TEST(StatsTest, RefusesForeignFiles) {
  const auto elf = ImageBytes().word(0x464c457f).message(kDump).bytes();
  EXPECT_EQ(dump_error(elf),
            "cannot read stats-dump: it is not a CRIU statistics image: it begins with 0x464c457f "
            "and not 0x57093306");
  const auto other = ImageBytes().word(kService).word(0x12345678).message(kDump).bytes();
  EXPECT_NE(dump_error(other).find("begins with 0x12345678"), std::string::npos);
}

TEST(StatsTest, RefusesASizeThatIsLargerThanTheFile) {
  const auto huge = ImageBytes().word(kService).word(kStats).word(0xffffffff).raw(kDump).bytes();
  EXPECT_EQ(
      dump_error(huge),
      "cannot read stats-dump: it is cut short at byte 12, where 4294967295 bytes should follow "
      "and 27 do");
}

TEST(StatsTest, RefusesWrongMessages) {
  EXPECT_NE(dump_error(image({0xff, 0xff, 0xff})).find("the message at byte 12"),
            std::string::npos);
  EXPECT_NE(dump_error(image({})).find("no statistics of a dump"), std::string::npos);
  const auto twice = ImageBytes().word(kService).word(kStats).message(kDump).message(kDump).bytes();
  EXPECT_NE(dump_error(twice).find("more than one message"), std::string::npos);
  // The message of a dump lacks a required field.
  EXPECT_NE(dump_error(image({0x0a, 0x02, 0x08, 0x01})).find("is not CRIU's statistics"),
            std::string::npos);
}

TEST(StatsTest, ReadsAFileAndNamesOneThatCannotBeRead) {
  const test::TemporaryDirectory folder;
  const std::string good =
      folder.file("stats-dump", ImageBytes().word(kService).word(kStats).message(kDump).text());
  EXPECT_TRUE(read_dump_stats(good).ok());
  const std::string missing = folder.path() + "/missing";
  EXPECT_EQ(read_dump_stats(missing).error().message,
            "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(read_dump_stats(missing).error().code, Code::not_found);
  EXPECT_EQ(read_dump_stats(folder.path()).error().code, Code::invalid_argument);
  const std::string large = folder.file("large", "");
  ASSERT_EQ(truncate(large.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(read_dump_stats(large).error().code, Code::out_of_range);
}

// A log of 5,000 s is longer than the 4,294.97 s that a figure of 32 bits can hold.
TEST(StatsTest, ATimeThatWrappedIsRecognisedByTheSpanOfItsLog) {
  EXPECT_EQ(unwrapped_us(700'000'000, 5'000'000'000), 700'000'000U + (std::uint64_t{1} << 32U));
  // If the figure had wrapped once more, its time would be longer than the log.
  EXPECT_FALSE(unwrapped_us(800'000'000, 5'000'000'000));
  EXPECT_EQ(unwrapped_us(1'000'000, 10'000'000'000), 1'000'000U + (std::uint64_t{2} << 32U));
  EXPECT_FALSE(unwrapped_us(7, 0));
}

TEST(StatsTest, CausesThatTheFiguresTell) {
  DumpStats stats;
  EXPECT_TRUE(known_causes(stats).empty());
  stats.freezing_time_us = 100'800;
  stats.memwrite_time_us = 1'000'000;
  stats.pages_written = 2'560;  // 10 MiB in one second
  const std::vector<std::string> causes = known_causes(stats);
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_NE(causes[0].find("every 100 ms"), std::string::npos);
  EXPECT_NE(causes[1].find("10 MB/s"), std::string::npos);
  EXPECT_NE(causes[1].find("compression"), std::string::npos)
      << "the figures do not say what it was";
}

TEST(StatsTest, FiguresAreThoseThatCriuGave) {
  DumpStats stats;
  const std::size_t always = figures(stats).size();
  stats.pages_lazy = 5;
  const std::vector<StatsFigure> all = figures(stats);
  ASSERT_EQ(all.size(), always + 1);
  EXPECT_STREQ(all.back().name, "pages_lazy");
  EXPECT_EQ(all.back().value, 5U);
}

// The columns of kymod's recordings and the lines of /metrics depend on this order.
TEST(StatsTest, SummedFiguresKeepTheirOrder) {
  const std::vector<std::string_view> expected = {
      "pages_scanned",    "pages_skipped_parent", "pages_written",   "pages_restored",
      "freezing_time_us", "frozen_time_us",       "memdump_time_us", "memwrite_time_us",
      "forking_time_us",  "restore_time_us"};
  std::vector<std::string_view> names;
  for (const SummedFigure& figure : summed_figures()) names.push_back(figure.name);
  EXPECT_EQ(names, expected);
}

TEST(StatsTest, PodmanKnowsFewerFigures) {
  EXPECT_TRUE(is_podman_figure("frozen_time_us"));
  EXPECT_TRUE(is_podman_figure("pages_restored"));
  EXPECT_FALSE(is_podman_figure("pages_skipped_parent"));
  EXPECT_FALSE(is_podman_figure("shpages_scanned"));
}

}  // namespace
}  // namespace kymo::criu
