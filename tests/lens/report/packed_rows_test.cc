#include "lens/report/packed_rows.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lens/analysis/temp_folder.h"
#include "lens/report/html_report.h"

namespace kymo::report {
namespace {

using Columns = std::vector<std::vector<std::uint64_t>>;
constexpr std::size_t kBlock = PackedRows::kBlockRows;

std::string inflated(const std::string& bytes) {
  std::string out(std::size_t{32} << 20U, '\0');
  uLongf size = out.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  out.resize(size);
  return out;
}

// Unpacks the column in the way of the page, but in whole numbers.
std::vector<std::uint64_t> unpacked(const PackedColumn& column, std::size_t rows) {
  const std::string outline = inflated(column.outline);
  std::vector<std::string> planes;
  for (const std::string& plane : column.planes) planes.push_back(inflated(plane));
  std::vector<std::size_t> at(planes.size());
  const std::size_t blocks = (rows + kBlock - 1) / kBlock;
  EXPECT_EQ(outline.size(), blocks * 41);
  std::vector<std::uint64_t> values;
  for (std::size_t block = 0; block < blocks; ++block) {
    double first = 0;
    std::memcpy(&first, outline.data() + block * sizeof first, sizeof first);
    auto value = static_cast<std::uint64_t>(first);
    const auto width = static_cast<unsigned char>(outline[blocks * 40 + block]);
    const std::size_t count = std::min(kBlock, rows - block * kBlock);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t difference = 0;
      for (std::size_t byte = 0; byte < width; ++byte) {
        difference |= std::uint64_t{static_cast<unsigned char>(planes.at(byte).at(at.at(byte) + i))}
                      << (8 * byte);
      }
      value += (difference >> 1U) ^ (0 - (difference & 1U));
      values.push_back(value);
    }
    for (std::size_t byte = 0; byte < width; ++byte) at[byte] += count;
  }
  for (std::size_t i = 0; i < planes.size(); ++i) EXPECT_EQ(at[i], planes[i].size());
  return values;
}

class PackedRowsTest : public ::testing::Test {
 protected:
  analysis::Summary summary_of(const Columns& columns, const std::string& name = "a") {
    std::string text = "Time (ns)";
    for (std::size_t i = 1; i < columns.size(); ++i) text += "\t" + name + std::to_string(i);
    text += '\n';
    for (std::size_t row = 0; row < columns.front().size(); ++row) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        text += (i == 0 ? "" : "\t") + std::to_string(columns[i][row]);
      }
      text += '\n';
    }
    auto summary = analysis::summarize(folder_.file("run.tsv", text));
    EXPECT_TRUE(summary.ok());
    return std::move(summary).value();
  }

  tests::TempFolder folder_;
};

TEST_F(PackedRowsTest, EveryValueComesBack) {
  std::mt19937_64 random(1);
  Columns columns(5);
  std::uint64_t time = 0;
  for (std::size_t row = 0; row < 5 * kBlock + 77; ++row) {
    columns[0].push_back(time += random() % 2'000'000);
    columns[1].push_back(row * 3);
    columns[2].push_back(random() % 256);
    // Up to 2^52, because the first value of a block is a double.
    columns[3].push_back(random() >> 12U);
    columns[4].push_back(row % kBlock == 0 ? 5 : random());
  }
  const auto packed = pack_rows(summary_of(columns), {{{0, UINT64_MAX}}});
  ASSERT_TRUE(packed.ok());
  EXPECT_FALSE(packed->samples_left_out);
  ASSERT_EQ(packed->columns.size(), columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_EQ(unpacked(packed->columns[i], columns[i].size()), columns[i]) << "column " << i;
  }
}

// The bytes of the differences are random, either all of them or in a part of the rows. Each plane
// of bytes must be compressed nearly to its information content.
TEST_F(PackedRowsTest, PlanesOfRandomBytesTakeNoMoreThanTheySay) {
  std::mt19937_64 random(2);
  Columns columns(3);
  for (std::size_t row = 0; row < 400 * kBlock; ++row) {
    columns[0].push_back(row * 1'000'000);
    columns[1].push_back((row == 0 ? 0 : columns[1].back()) + random() % 65536);
    columns[2].push_back((row == 0 ? 0 : columns[2].back()) +
                         (row % 500'000 < 250'000 ? random() % 16 : 7));
  }
  const auto packed = pack_rows(summary_of(columns), {{{0, UINT64_MAX}}});
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(unpacked(packed->columns[1], columns[1].size()), columns[1]);
  EXPECT_EQ(unpacked(packed->columns[2], columns[2].size()), columns[2]);
  const auto bytes_a_row = [&](const PackedColumn& column) {
    std::size_t bytes = 0;
    for (const std::string& plane : column.planes) bytes += plane.size();
    return static_cast<double>(bytes) / static_cast<double>(columns[0].size());
  };
  EXPECT_LT(bytes_a_row(packed->columns[0]), 0.03);
  EXPECT_LT(bytes_a_row(packed->columns[1]), 2.1);         // 16 random bits per row
  EXPECT_LT(bytes_a_row(packed->columns[2]), 0.5 * 0.66);  // 4 random bits in two of three rows
}

TEST_F(PackedRowsTest, TheOutlineHoldsExtremesAndRatesAcrossBlocks) {
  Columns columns(2);
  for (std::size_t row = 0; row < 3 * kBlock; ++row) {
    columns[0].push_back(row * 1000);
    columns[1].push_back(row < kBlock ? 10 : 1010);  // one step at the end of the first block
  }
  columns[1][2 * kBlock + 5] = 7;
  const auto packed = pack_rows(summary_of(columns), {{{0, UINT64_MAX}}});
  ASSERT_TRUE(packed.ok());
  const std::string outline = inflated(packed->columns[1].outline);
  const auto number = [&](std::size_t offset) {
    double value = 0;
    std::memcpy(&value, outline.data() + offset, sizeof value);
    return value;
  };
  const auto rate = [&](std::size_t offset) {
    float value = 0;
    std::memcpy(&value, outline.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(number(3 * 8 + 2 * 8), 7);        // the lowest value of the third block
  EXPECT_EQ(number(3 * 16 + 2 * 8), 1010);    // the highest value of the third block
  EXPECT_EQ(rate(3 * 32 + 3 * 4 + 4), 1e9F);  // the highest rate of the second block: 1000 in 1 µs
  EXPECT_EQ(rate(3 * 32 + 2 * 4), -1003e6F);  // the lowest rate of the third block
}

TEST_F(PackedRowsTest, BlocksThatNobodyAsksForHaveTheirOutlineAlone) {
  Columns columns(2);
  for (std::size_t row = 0; row < 4 * kBlock; ++row) {
    columns[0].push_back(row);
    columns[1].push_back(row * 1000);
  }
  const auto packed = pack_rows(summary_of(columns), {{{kBlock, kBlock}}});
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(packed->samples_left_out);
  const std::string outline = inflated(packed->columns[1].outline);
  ASSERT_EQ(outline.size(), std::size_t{4 * 41});
  EXPECT_EQ(outline.substr(160), "\xff\x02\xff\xff");
  ASSERT_EQ(packed->columns[1].planes.size(), 2U);
  for (const std::string& plane : packed->columns[1].planes) {
    EXPECT_EQ(inflated(plane).size(), kBlock);
  }
}

TEST_F(PackedRowsTest, NoNameEndsTheDataOfThePage) {
  const auto data = report_data(summary_of({{1, 2}, {3, 4}}, "</script><b>"), {});
  if (!data && data.error().code == Code::unimplemented) GTEST_SKIP() << data.error().message;
  ASSERT_TRUE(data.ok());
  const auto page = report_page(*data, "");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->find("</script><b>"), std::string::npos);
  EXPECT_NE(page->find("\\u003c/script>\\u003cb>"), std::string::npos);
}

}  // namespace
}  // namespace kymo::report
