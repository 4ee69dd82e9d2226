#include "lens/analysis/tsv_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/zstd_frames.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

struct Read {
  std::vector<std::vector<std::uint64_t>> rows;
  std::vector<std::string> left_out;
};

Read read_all(TsvReader& reader) {
  Read read;
  RowBlock block = reader.make_block();
  for (;;) {
    auto more = reader.next(block);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) {
      break;
    }
    for (std::size_t row = 0; row < block.rows(); ++row) {
      std::vector<std::uint64_t> values;
      for (std::size_t column = 0; column <= reader.columns().size(); ++column) {
        values.push_back(block.column(column)[row]);
      }
      read.rows.push_back(values);
    }
  }
  read.left_out = reader.left_out().sentences();
  return read;
}

Read read_text(const std::string& text) {
  auto reader = TsvReader::from_text(text, "text");
  EXPECT_TRUE(reader.ok());
  return reader.ok() ? read_all(*reader) : Read{};
}

std::string refusal(const std::string& text) {
  auto reader = TsvReader::from_text(text, "x.tsv");
  EXPECT_FALSE(reader.ok());
  return reader.ok() ? "" : reader.error().message;
}

TEST(TsvReader, ReadsRowsUpToTheLargestNumber) {
  const Read read = read_text("Time (ns)\ta\tb[x,y]\n1\t0\t18446744073709551615\n2\t3\t4\n");
  EXPECT_EQ(read.rows, (std::vector<std::vector<std::uint64_t>>{{1, 0, UINT64_MAX}, {2, 3, 4}}));
  EXPECT_TRUE(read.left_out.empty());
}

TEST(TsvReader, NamesTheColumnsOfTheHeader) {
  auto reader = TsvReader::from_text("Time (ns)\ta\tb[x,y]\n", "text");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->columns(), (std::vector<std::string>{"a", "b[x,y]"}));
}

TEST(TsvReader, HeaderWithoutRowsIsARecordingOfNothing) {
  EXPECT_TRUE(read_text("Time (ns)\ta\n").rows.empty());
  EXPECT_EQ(read_text("Time (ns)\n5\n").rows.size(), 1U);
}

TEST(TsvReader, LeavesOutALastLineThatWasCutThoughItLooksWhole) {
  const Read read = read_text("Time (ns)\ta\n1\t1\n2\t2");
  EXPECT_EQ(read.rows.size(), 1U);
  ASSERT_EQ(read.left_out.size(), 1U);
  EXPECT_EQ(read.left_out[0], "line 3: cut short: the file ends in the middle of this row");
}

TEST(TsvReader, SaysByLineWhatItLeftOut) {
  const Read read = read_text(
      "Time (ns)\ta\tb\n1\t1\t1\n2\t2\n3\t3\t3\t3\n4\tx4\t4\n5\t5\t18446744073709551616\n"
      "\n7\t\t7\n8\t-8\t8\n9\t9\t9\n4\t4\t4\n10\t1.5\t1\n11\t1\t1\r\n12\t1\t2\n");
  EXPECT_EQ(read.rows, (std::vector<std::vector<std::uint64_t>>{{1, 1, 1}, {9, 9, 9}, {12, 1, 2}}));
  EXPECT_EQ(read.left_out, (std::vector<std::string>{
                               "line 3: 2 values where the header has 3",
                               "line 4: 4 values where the header has 3",
                               "line 5: value 2, \"x4\", is not a whole number",
                               "line 6: value 3, \"18446744073709551616\", is past 2^64 - 1",
                               "line 7: an empty line",
                               "line 8: value 2, \"\", is not a whole number",
                               "line 9: value 2, \"-8\", is not a whole number",
                               "line 11: its time is before that of the row above",
                               "line 12: value 2, \"1.5\", is not a whole number",
                               "line 13: value 3, \"1?\", is not a whole number",
                           }));
}

TEST(TsvReader, MergesNeighboursAndBoundsTheList) {
  std::string text = "Time (ns)\ta\n1\n2\n3\n";
  for (int i = 0; i < 500; ++i) {
    text += "x" + std::to_string(i) + "\t1\n";
  }
  auto reader = TsvReader::from_text(text, "text");
  ASSERT_TRUE(reader.ok());
  const Read read = read_all(*reader);
  EXPECT_EQ(read.left_out.front(), "lines 2 to 4: 1 values where the header has 2");
  EXPECT_EQ(reader->left_out().lines(), 503U);
  EXPECT_EQ(reader->left_out().spans().size(), LeftOut::kMaxSpans);
  EXPECT_EQ(read.left_out.back(), "and 401 lines more");
}

TEST(TsvReader, RefusesWhatIsNoRecording) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("time,a\n1,2\n").find("\"time,a\", not the header"), std::string::npos);
  EXPECT_NE(refusal("Time (ns)x\n").find("not the header"), std::string::npos);
  EXPECT_NE(refusal("Time (ns)\ta").find("in the middle of its header"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x28\xb5\x2f\xfd\0\n", 6)).find("not the header"),
            std::string::npos);
}

TEST(TsvReader, ReadsAcrossItsBufferAndPassesOverLinesThatNeverFit) {
  const tests::TempFolder folder;
  std::string text = "Time (ns)\tvalue\n";
  constexpr std::uint64_t kRows = 300'000;  // several times as long as the read buffer
  for (std::uint64_t row = 1; row <= kRows; ++row) {
    text += std::to_string(row) + "\t" + std::to_string(row * 1'000'003) + "\n";
    if (row == kRows / 2) {
      text += std::string(3'000'000, '7') + "\n";
    }
  }
  auto reader = TsvReader::open(folder.file("long.tsv", text));
  ASSERT_TRUE(reader.ok());
  const Read read = read_all(*reader);
  ASSERT_EQ(read.rows.size(), kRows);
  for (std::uint64_t row = 1; row <= kRows; ++row) {
    ASSERT_EQ(read.rows[row - 1][1], row * 1'000'003);
  }
  EXPECT_EQ(read.left_out, (std::vector<std::string>{"line " + std::to_string(kRows / 2 + 2) +
                                                     ": longer than any row"}));
}

// A recording can have up to 4096 columns, so its header can be longer than the first read.
TEST(TsvReader, ReadsAHeaderThatIsLongerThanWhatIsReadAtFirst) {
  const tests::TempFolder folder;
  constexpr std::size_t kColumns = 4096;
  std::string text = "Time (ns)";
  std::string row = "5";
  for (std::size_t i = 1; i <= kColumns; ++i) {
    text += "\trequests_by_the_service_that_has_a_long_name[column_" + std::to_string(i) + "]";
    row += "\t" + std::to_string(i);
  }
  auto reader = TsvReader::open(folder.file("wide.tsv", text + "\n" + row + "\n"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->columns().size(), kColumns);
  const Read read = read_all(*reader);
  ASSERT_EQ(read.rows.size(), 1U);
  EXPECT_EQ(read.rows[0].back(), kColumns);
}

TEST(TsvReader, SaysWhatItCouldNotOpen) {
  const tests::TempFolder folder;
  auto missing = TsvReader::open(folder / "none.tsv");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_NE(missing.error().message.find("none.tsv"), std::string::npos);
  EXPECT_FALSE(TsvReader::open(folder / "").ok());
}

// A recording of compressed frames with two rows each, and the same text uncompressed.
struct Frames {
  std::string text = "Time (ns)\ta\n";
  std::string bytes;
  std::vector<std::size_t> ends;  // where each frame ends
};

Frames make_frames() {
  Frames frames;
  FrameCompressor compressor = FrameCompressor::make(1024).value();
  const auto append = [&](const std::string& piece) {
    frames.bytes += compressor.compress(piece);
    frames.ends.push_back(frames.bytes.size());
  };
  append(frames.text);
  for (int i = 0; i < 20; ++i) {
    const std::string piece = std::to_string(2 * i) + "\t1\n" + std::to_string(2 * i + 1) + "\t2\n";
    frames.text += piece;
    append(piece);
  }
  return frames;
}

TEST(TsvReader, ReadsACompressedFileCutAnywhereUpToTheLastWholeFrame) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  const tests::TempFolder folder;
  const Frames frames = make_frames();
  for (std::size_t size = frames.ends[0]; size <= frames.bytes.size(); ++size) {
    auto reader = TsvReader::open(folder.file("run.tsv.zst", frames.bytes.substr(0, size)));
    ASSERT_TRUE(reader) << reader.error().message;
    const Read read = read_all(*reader);
    const auto whole = static_cast<std::size_t>(
        std::upper_bound(frames.ends.begin(), frames.ends.end(), size) - frames.ends.begin());
    // If only the checksum of a frame is cut off, the text of the frame may have been read already.
    ASSERT_GE(read.rows.size(), 2 * (whole - 1)) << size;
    ASSERT_LE(read.rows.size(), 2 * whole) << size;
    ASSERT_EQ(read.left_out.empty(), frames.ends[whole - 1] == size) << size;
    for (const std::string& sentence : read.left_out) {
      EXPECT_NE(sentence.find("middle of a compressed frame"), std::string::npos) << sentence;
    }
  }
}

TEST(TsvReader, SaysFromWhereACompressedFileIsDamaged) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  const tests::TempFolder folder;
  Frames frames = make_frames();
  frames.bytes[frames.ends[4] + 1] ^= 0x55;  // damages the magic number of a frame
  auto reader = TsvReader::open(folder.file("run.tsv.zst", frames.bytes));
  ASSERT_TRUE(reader);
  const Read read = read_all(*reader);
  EXPECT_EQ(read.rows.size(), 8U);
  ASSERT_EQ(read.left_out.size(), 1U);
  EXPECT_NE(read.left_out[0].find("damaged"), std::string::npos) << read.left_out[0];
}

TEST(TsvReader, TellsCompressionByTheContentAndNotByTheName) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  const tests::TempFolder folder;
  auto reader = TsvReader::open(folder.file("run.tsv", make_frames().bytes));
  ASSERT_TRUE(reader);
  EXPECT_EQ(read_all(*reader).rows.size(), 40U);
  auto plain = TsvReader::open(folder.file("run.tsv.zst", make_frames().text));
  ASSERT_TRUE(plain);
  EXPECT_EQ(read_all(*plain).rows.size(), 40U);
}

}  // namespace
}  // namespace kymo::analysis
