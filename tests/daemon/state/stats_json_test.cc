#include "daemon/state/stats_json.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/criu/images/image_bytes.h"
#include "daemon/recording/metrics.h"
#include "lens/report/api_json.h"
#include "lens/report/checkpoint_stats.h"

namespace kymo::daemon {
namespace {

using google::protobuf::FieldDescriptor;

// A message in which each field of the API has a different value.
template <class Message>
Message with_every_field() {
  Message message;
  for (int i = 0; i < Message::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Message::descriptor()->field(i);
    const auto value = static_cast<std::uint32_t>(1000 + i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      Message::GetReflection()->SetUInt32(&message, field, value);
    } else {
      Message::GetReflection()->SetUInt64(&message, field, value);
    }
  }
  return message;
}

// An image of CRIU's statistics with these fields. CRIU's message has the same types and numbers as
// ours.
std::vector<std::byte> image_of(const google::protobuf::Message& stats, unsigned field) {
  const std::string bytes = stats.SerializeAsString();
  std::vector<std::uint8_t> entry{static_cast<std::uint8_t>(field << 3U | 2U),
                                  static_cast<std::uint8_t>(bytes.size())};
  EXPECT_LT(bytes.size(), 128U) << "its length would need two bytes";
  entry.insert(entry.end(), bytes.begin(), bytes.end());
  return criu::ImageBytes().word(0x55105940).word(0x57093306).message(entry).bytes();
}

// Each figure goes from CRIU's image to the tables. If a step leaves one out, it is missing at the
// end.
template <class Message, class Stats>
void expect_no_figure_is_lost(const Message& sent, const Stats& read) {
  const Message api = to_api(read);
  EXPECT_EQ(api.ShortDebugString(), sent.ShortDebugString());
  const auto all = static_cast<std::size_t>(Message::descriptor()->field_count());
  const std::vector<report::ApiFigure> shown = report::figures_of(api);
  const std::vector<criu::StatsFigure> figures = criu::figures(read);
  ASSERT_EQ(shown.size(), all);
  ASSERT_EQ(figures.size(), all);
  for (std::size_t i = 0; i < all; ++i) {
    EXPECT_EQ(shown[i].name, figures[i].name);
    EXPECT_EQ(shown[i].value, 1000 + i) << figures[i].name;
    EXPECT_EQ(figures[i].value, 1000 + i) << figures[i].name;
    const bool is_time = shown[i].name.ends_with("_us");
    EXPECT_EQ(figures[i].unit == Unit::microseconds, is_time) << figures[i].name;
  }
  EXPECT_EQ(report::to_json(api), to_json(read));
  EXPECT_EQ(to_json(read).size(), all);
}

TEST(StatsJsonTest, NoFigureOfADumpIsLost) {
  const auto sent = with_every_field<v1::DumpStats>();
  const auto read = criu::parse_dump_stats(image_of(sent, 1), "stats-dump");
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_no_figure_is_lost(sent, *read);
}

TEST(StatsJsonTest, NoFigureOfARestoreIsLost) {
  const auto sent = with_every_field<v1::RestoreStats>();
  const auto read = criu::parse_restore_stats(image_of(sent, 2), "stats-restore");
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_no_figure_is_lost(sent, *read);
}

TEST(StatsJsonTest, FiguresThatCriuLeftOutAreLeftOut) {
  criu::DumpStats stats;
  stats.page_pipes = 0;  // present, with the value 0
  const v1::DumpStats api = to_api(stats);
  EXPECT_TRUE(api.has_page_pipes());
  EXPECT_FALSE(api.has_pages_lazy());
  EXPECT_EQ(report::to_json(api), to_json(stats));
  EXPECT_EQ(to_json(stats).size(), 8U) << "the seven figures that CRIU always writes, and this one";
}

// Each figure that is a column of kymod is added to its own column.
TEST(StatsJsonTest, EachColumnOfCriusFiguresCounts) {
  const auto metrics = Metrics::make().value();
  const auto dump = criu::parse_dump_stats(image_of(with_every_field<v1::DumpStats>(), 1), "dump");
  const auto restore =
      criu::parse_restore_stats(image_of(with_every_field<v1::RestoreStats>(), 2), "restore");
  metrics->add(*dump);
  metrics->add(*restore);
  std::map<std::string, std::uint64_t> expected;
  for (const criu::StatsFigure& figure : criu::figures(*dump)) expected[figure.name] = figure.value;
  for (const criu::StatsFigure& figure : criu::figures(*restore)) {
    expected[figure.name] = figure.value;
  }
  const auto sampler = metrics->registry().sampler({}).value();
  std::vector<std::uint64_t> row(sampler->columns().size());
  sampler->read(row.data());
  std::size_t counted = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string& name = sampler->columns()[i].name;
    const auto figure = expected.find(name);
    if (figure == expected.end()) {
      EXPECT_EQ(row[i], 0U) << name;
    } else {
      EXPECT_EQ(row[i], figure->second) << name;
      ++counted;
    }
  }
  EXPECT_EQ(counted, 10U);
}

}  // namespace
}  // namespace kymo::daemon
