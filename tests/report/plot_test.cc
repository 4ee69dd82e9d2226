#include "report/plot.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "analysis/temp_folder.h"
#include "report/curves.h"
#include "report/gnuplot.h"

namespace kymo::report {
namespace {

using std::chrono::milliseconds;

analysis::Summary summary_of(const tests::TempFolder& folder, const std::string& rows) {
  auto summary = analysis::summarize(folder.file("run.tsv", rows));
  EXPECT_TRUE(summary.ok());
  return std::move(*summary);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Plot, ChoosesTheFormatByTheEnding) {
  EXPECT_EQ(*picture_format("a.png"), PictureFormat::png);
  EXPECT_EQ(*picture_format("a.svg"), PictureFormat::svg);
  EXPECT_EQ(picture_format("a.jpg").error().code, Code::invalid_argument);
}

TEST(Plot, DrawsNamesThatWouldUpsetGnuplot) {
  const tests::TempFolder folder;
  const auto summary = summary_of(
      folder, "Time (ns)\tit's `id` \"{/=9 x}\" <b>&\n1000\t1\n20000000\t5\n40000000\t900\n");
  const std::string picture = folder / "p.svg";
  const auto drawn = plot(summary, picture);
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  const std::string svg = contents(picture);
  EXPECT_NE(svg.find("it's `id` \"{/=9 x}\" &lt;b>&amp;"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(Plot, DrawsARecordingOfTwoRows) {
  const tests::TempFolder folder;
  const auto summary = summary_of(folder, "Time (ns)\ta\n5\t1\n6\t2\n");
  EXPECT_TRUE(plot(summary, folder / "p.png").ok());
  EXPECT_EQ(contents(folder / "p.png").substr(1, 3), "PNG");
}

TEST(Plot, SaysWhenThereIsNothingToSee) {
  const tests::TempFolder folder;
  const auto drawn = plot(summary_of(folder, "Time (ns)\ta\n1\t1\n2\t1\n"), folder / "p.png");
  ASSERT_FALSE(drawn.ok());
  EXPECT_EQ(drawn.error().code, Code::failed_precondition);
  EXPECT_FALSE(std::filesystem::exists(folder / "p.png"));
}

TEST(Plot, TheRecordersOwnCountersComeLast) {
  const tests::TempFolder folder;
  const auto both = summary_of(folder, "Time (ns)\tprofiler_rows\tb\n1\t1\t1\n2\t900\t2\n");
  EXPECT_EQ(choose_curves(both)->left, std::vector<std::size_t>{1});
  const auto own = summary_of(folder, "Time (ns)\tprofiler_rows\tb\n1\t1\t1\n2\t900\t1\n");
  EXPECT_EQ(choose_curves(own)->left, std::vector<std::size_t>{0});
}

TEST(Gnuplot, AFailureLeavesWhatStoodThere) {
  const tests::TempFolder folder;
  const std::string picture = folder.file("p.png", "old");
  const auto drawn = run_gnuplot("plot nonsense(\n", picture, milliseconds(20'000));
  ASSERT_FALSE(drawn.ok());
  EXPECT_NE(drawn.error().message.find("gnuplot failed"), std::string::npos);
  EXPECT_EQ(contents(picture), "old");
  const auto entries = std::filesystem::directory_iterator(folder / "");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(Gnuplot, IsEndedWhenItTakesTooLong) {
  const tests::TempFolder folder;
  const auto drawn = run_gnuplot("pause 30\n", folder / "p.png", milliseconds(300));
  ASSERT_FALSE(drawn.ok());
  EXPECT_EQ(drawn.error().code, Code::deadline_exceeded);
  EXPECT_FALSE(std::filesystem::exists(folder / "p.png"));
}

}  // namespace
}  // namespace kymo::report
