// Checks that the readers can read the worked example of docs/formats.md.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "lens/analysis/quality.h"
#include "lens/analysis/summary.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

// Returns the `n`th block of the document that is fenced as `language`.
std::string block(const std::string& language, int n) {
  std::ifstream file(KYMO_SOURCE_DIR "/docs/formats.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string fence = "```" + language + "\n";
  std::size_t at = 0;
  for (int i = 0; i <= n; ++i) {
    at = text.find(fence, at);
    if (at == text.npos) {
      ADD_FAILURE() << "no block " << n << " of " << language;
      return {};
    }
    at += fence.size();
  }
  return text.substr(at, text.find("```", at) - at);
}

TEST(FormatDocument, TheExampleOfThePageIsARecordingWithoutFault) {
  const tests::TempFolder folder;
  const std::string path = folder.file("example.tsv", block("tsv", 0));
  static_cast<void>(folder.file("example.gaps.tsv", block("tsv", 1)));
  static_cast<void>(folder.file("example.meta.json", block("json", 0)));
  auto summary = summarize(path);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_TRUE(summary->recording.notes.empty());
  EXPECT_TRUE(summary->left_out.empty());
  EXPECT_EQ(summary->rows, 5U);
  ASSERT_EQ(summary->columns.size(), 3U);
  EXPECT_EQ(summary->columns[0].info.fields.size(), 2U);
  EXPECT_EQ(summary->columns[1].last, 393'216U);
  EXPECT_EQ(summary->columns[2].info.kind, Kind::gauge);
  EXPECT_EQ(summary->recording.metadata->marks.size(), 3U);
  const auto capture = capture_of(*summary);
  ASSERT_TRUE(capture.has_value());
  EXPECT_EQ(capture->rows + capture->missed[0], capture->ticks_due);
  EXPECT_EQ(summary->recording.gaps->ticks(), capture->missed[0]);
}

}  // namespace
}  // namespace kymo::analysis
