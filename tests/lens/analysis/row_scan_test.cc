#include "lens/analysis/row_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lens/analysis/column_sum.h"
#include "lens/analysis/row_kernel.h"
#include "lens/analysis/row_parser.h"

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

// If `kernel` is null, parses one digit after the other.
Parsed parse_whole(const std::string& text, std::size_t columns, const RowKernel* kernel) {
  Parsed parsed;
  RowParser parser(columns, 1, kernel);
  RowBlock block(columns, 333);
  // The kernel reads bytes before a line, and nothing before the first line may be readable. So the first line is never
  // scanned.
  for (std::string_view rest = text; !rest.empty(); block.clear()) {
    rest.remove_prefix(parser.parse(rest, block));
    append_rows(block, columns, parsed.rows);
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
  const Parsed digits = parse_whole(text, columns, nullptr);
  for (const RowKernel* kernel : row_kernels()) {
    SCOPED_TRACE(kernel->name);
    const Parsed scanned = parse_whole(text, columns, kernel);
    ASSERT_EQ(scanned.rows, digits.rows);
    ASSERT_EQ(scanned.left_out, digits.left_out);
  }
}

TEST(RowScan, ReadsWhatDigitByDigitReads) {
  std::mt19937_64 random(1);
  for (std::size_t columns = 1; columns < 40; columns += 3) {
    // Some numbers of 20 digits are too large for the scan.
    for (const int most_digits : {20, 16, 15, 8, 3, 1}) {
      expect_same(random_rows(random, columns, 500, most_digits), columns);
    }
  }
}

// Each width beside each other width, at each position in the group of four or eight numbers that the scan converts at once.
TEST(RowScan, ReadsNumbersOfEveryWidth) {
  std::mt19937_64 random(5);
  std::string text;
  Rows rows;
  for (std::size_t row = 0; row < 2000; ++row) {
    rows.push_back({row});
    text += std::to_string(row);
    for (std::size_t i = 1; i < 11; ++i) {
      std::uint64_t below = 1;
      for (std::size_t digits = random() % 20; digits != 0; --digits) below *= 10;
      rows.back().push_back(below == 1 ? 0 : random() % below);
      // The number may have leading zeros.
      const std::size_t zeros = random() % 4 == 0 ? random() % 5 : 0;
      text += '\t' + std::string(zeros, '0') + std::to_string(rows.back().back());
    }
    text += '\n';
  }
  for (const RowKernel* kernel : row_kernels()) {
    EXPECT_EQ(parse_whole(text, 11, kernel).rows, rows) << kernel->name;
  }
  EXPECT_EQ(parse_whole(text, 11, nullptr).rows, rows);
}

TEST(RowScan, LeavesOutNumbersPastTheLargestByTheirLine) {
  std::mt19937_64 random(6);
  const std::string largest = std::to_string(UINT64_MAX);
  std::string text = random_rows(random, 2, 100, 1);
  const std::vector<std::string> numbers{"1",
                                         largest,
                                         "18446744073709551616",
                                         "0" + largest,
                                         std::string(40, '9'),
                                         std::string(40, '0') + "7"};
  for (const std::string& number : numbers) text += "99999999999\t" + number + '\n';
  for (std::size_t row = 0; row < 100; ++row) text += "99999999999\t12\n";
  expect_same(text, 2);
  const Parsed read = parse_whole(text, 2, best_row_kernel());
  ASSERT_EQ(read.rows.size(), 204U);
  EXPECT_EQ(read.rows[101].back(), UINT64_MAX);
  EXPECT_EQ(read.rows[102].back(), UINT64_MAX);
  EXPECT_EQ(read.rows[103].back(), 7U);
  ASSERT_EQ(read.left_out.size(), 2U);
  EXPECT_NE(read.left_out[0].find("line 103"), std::string::npos) << read.left_out[0];
  EXPECT_NE(read.left_out[1].find("line 105"), std::string::npos) << read.left_out[1];
}

// Wherever the text is cut, all whole rows are read and the rest is left to the caller.
TEST(RowScan, StopsBeforeARowThatIsCut) {
  std::mt19937_64 random(7);
  const std::string rows = random_rows(random, 5, 60, 12);
  const std::string margin(RowScan::kMargin, '7');
  const std::size_t length = std::min<std::size_t>(rows.size(), 1000);
  for (const RowKernel* kernel : row_kernels()) {
    RowScan scan(5, *kernel);
    for (std::size_t cut = 0; cut <= length; ++cut) {
      const std::string text = margin + rows.substr(0, cut);
      const std::string_view readable = text;
      const std::string_view whole = readable.substr(margin.size());
      std::vector<std::uint64_t> words(5 * 100);
      const RowScan::Scanned scanned = scan.scan(whole, {words.data(), 100, 100}, 0);
      EXPECT_EQ(scanned.bytes, whole.rfind('\n') + 1);
      EXPECT_EQ(scanned.rows,
                static_cast<std::size_t>(std::count(whole.begin(), whole.end(), '\n')));
    }
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
  const std::string text = std::string(RowScan::kMargin, '\n') + "5\t1\n6\t2\n5\t3\n7\t4\n";
  for (const RowKernel* kernel : row_kernels()) {
    std::vector<std::uint64_t> words(8);
    RowScan scan(2, *kernel);
    const RowScan::Scanned scanned =
        scan.scan({text.data() + RowScan::kMargin, 16}, {words.data(), 4, 4}, 5);
    EXPECT_EQ(scanned.rows, 2U);
    EXPECT_EQ(scanned.bytes, 8U);
    EXPECT_EQ(words, (std::vector<std::uint64_t>{5, 6, 0, 0, 1, 2, 0, 0}));
  }
}

// Rows do not have bytes below tab, or between line end and the digits. Code that compares signed bytes would take bytes
// above 127 for small ones.
TEST(RowScan, TakesNoOtherByteForASeparator) {
  std::mt19937_64 random(8);
  const std::string rows = random_rows(random, 3, 200, 6);
  for (int byte = 0; byte < 256; ++byte) {
    std::string text = rows;
    text[text.size() / 2] = static_cast<char>(byte);
    text[text.size() - 2] = static_cast<char>(byte);
    expect_same(text, 3);
  }
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
    plain.add({1, value, value, value, value, 0});
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
  }
}

TEST(ColumnSum, TakesRisingValuesByTheirEnds) {
  const std::vector<std::uint64_t> values{1, 1, 2, 3, 5, 8, UINT64_MAX};
  const ColumnSum sum = sum_of(values);
  EXPECT_EQ(sum.min, 1U);
  EXPECT_EQ(sum.max, UINT64_MAX);
  EXPECT_EQ(sum.falls, 0U);
}

}  // namespace
}  // namespace kymo::analysis
