#include "analysis/row_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "analysis/column_sum.h"
#include "analysis/row_parser.h"

namespace kymo::analysis {
namespace {

using Rows = std::vector<std::vector<std::uint64_t>>;

struct Parsed {
  Rows rows;
  std::vector<std::string> left_out;
};

void append_rows(const RowBlock& block, std::size_t columns, Rows& rows) {
  for (std::size_t row = 0; row < block.rows(); ++row) {
    rows.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) rows.back().push_back(block.column(i)[row]);
  }
}

Parsed parse_whole(const std::string& text, std::size_t columns) {
  Parsed parsed;
  RowParser parser(columns, 1);
  RowBlock block(columns, 100);
  for (std::string_view rest = text; !rest.empty(); block.clear()) {
    rest.remove_prefix(parser.parse(rest, block));
    append_rows(block, columns, parsed.rows);
  }
  parsed.left_out = parser.left_out().sentences();
  return parsed;
}

// The first line of a text is never scanned: so each line alone is parsed digit by digit.
Parsed parse_line_by_line(const std::string& text, std::size_t columns) {
  Parsed parsed;
  RowParser parser(columns, 1);
  RowBlock block(columns, 1);
  for (std::size_t begin = 0; begin < text.size(); block.clear()) {
    const std::size_t end = text.find('\n', begin) + 1;
    parser.parse({text.data() + begin, end - begin}, block);
    append_rows(block, columns, parsed.rows);
    begin = end;
  }
  parsed.left_out = parser.left_out().sentences();
  return parsed;
}

std::string random_rows(std::mt19937_64& random, std::size_t columns, std::size_t rows,
                        int most_digits) {
  std::string text;
  std::uint64_t time = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    text += std::to_string(time += random() % 1000);
    for (std::size_t i = 1; i < columns; ++i) {
      std::string value(1 + random() % static_cast<unsigned>(most_digits), '0');
      for (char& digit : value) digit = static_cast<char>('0' + random() % 10);
      text += '\t' + value;
    }
    text += '\n';
  }
  return text;
}

void expect_same(const std::string& text, std::size_t columns) {
  const Parsed whole = parse_whole(text, columns);
  const Parsed lines = parse_line_by_line(text, columns);
  ASSERT_EQ(whole.rows, lines.rows);
  ASSERT_EQ(whole.left_out, lines.left_out);
}

TEST(RowScan, ReadsWhatDigitByDigitReads) {
  std::mt19937_64 random(1);
  for (std::size_t columns = 1; columns < 40; columns += 3) {
    expect_same(random_rows(random, columns, 500, 20), columns);  // some too long for the scan
    expect_same(random_rows(random, columns, 500, 16), columns);
    expect_same(random_rows(random, columns, 500, 3), columns);
  }
}

TEST(RowScan, LeavesEveryKindOfDamageToTheParser) {
  std::mt19937_64 random(2);
  const std::string rubbish = "\t\n-x. 9\r";
  for (int round = 0; round < 50; ++round) {
    const std::size_t columns = 1 + random() % 20;
    std::string text = random_rows(random, columns, 400, 12);
    const std::size_t faults = 1 + random() % 20;
    for (std::size_t i = 0; i < faults; ++i) {
      const std::size_t at = random() % (text.size() - 1);
      switch (random() % 3) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, rubbish[random() % rubbish.size()]);
          break;
        default:
          text[at] = rubbish[random() % rubbish.size()];
      }
    }
    expect_same(text, columns);
  }
}

TEST(RowScan, StopsWhereTimeGoesBack) {
  if (!RowScan::supported()) GTEST_SKIP() << "this machine has no AVX2";
  const std::string text = std::string(RowScan::kMargin, '\n') + "5\t1\n6\t2\n5\t3\n7\t4\n";
  std::vector<std::uint64_t> words(8);
  RowScan scan(2);
  const RowScan::Scanned scanned =
      scan.scan({text.data() + RowScan::kMargin, 16}, {words.data(), 4, 4}, 5);
  EXPECT_EQ(scanned.rows, 2U);
  EXPECT_EQ(scanned.bytes, 8U);
  EXPECT_EQ(words, (std::vector<std::uint64_t>{5, 6, 5, 0, 1, 2, 3, 0}));  // the third is nobody's
}

TEST(RowScan, ReadsARowThatIsLongerThanItsPiece) {
  std::mt19937_64 random(3);
  expect_same(random_rows(random, 4097, 20, 16), 4097);
}

TEST(ColumnSum, AddsUpPieceByPiece) {
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> values(1000);
  for (std::uint64_t& value : values) value = random() >> (random() % 60);
  const std::span<const std::uint64_t> all(values);
  ColumnSum plain;
  for (const std::uint64_t& value : values) {
    plain.add({1, value, value, value, value, 0, value, 0});
  }
  for (const std::size_t cut : {0UL, 1UL, 2UL, 5UL, 500UL, 999UL, 1000UL}) {
    ColumnSum sum = sum_of(all.first(cut));
    sum.add(sum_of(all.subspan(cut)));
    EXPECT_EQ(sum.values, plain.values);
    EXPECT_EQ(sum.first, plain.first);
    EXPECT_EQ(sum.last, plain.last);
    EXPECT_EQ(sum.min, plain.min);
    EXPECT_EQ(sum.max, plain.max);
    EXPECT_EQ(sum.falls, plain.falls);
    EXPECT_EQ(sum.sum, plain.sum);
    EXPECT_EQ(sum.sum_high, plain.sum_high);
  }
  EXPECT_GT(plain.sum_high, 0U);
}

TEST(ColumnSum, TakesRisingValuesByTheirEnds) {
  const std::vector<std::uint64_t> values{1, 1, 2, 3, 5, 8, UINT64_MAX};
  const ColumnSum sum = sum_of(values);
  EXPECT_EQ(sum.min, 1U);
  EXPECT_EQ(sum.max, UINT64_MAX);
  EXPECT_EQ(sum.falls, 0U);
  EXPECT_EQ(sum.sum, 19U);
  EXPECT_EQ(sum.sum_high, 1U);
}

}  // namespace
}  // namespace kymo::analysis
