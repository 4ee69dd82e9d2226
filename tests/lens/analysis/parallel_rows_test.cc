#include "lens/analysis/parallel_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lens/analysis/summary.h"
#include "lens/analysis/tsv_reader.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

std::string rows_of(std::size_t rows, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text = "Time (ns)\ta\tb\tc\n";
  std::uint64_t a = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    a += random() % 100'000;
    text += std::to_string(row * 1000) + '\t' + std::to_string(a) + '\t' +
            std::to_string(random() % 1000) + '\t' + std::to_string(random()) + '\n';
  }
  return text;
}

struct ReadBy {
  std::uint64_t rows_in_parallel = 0;
  std::vector<ColumnSum> sums = std::vector<ColumnSum>(4);
  std::vector<std::string> left_out;
  std::uint64_t lines_left_out = 0;
};

ReadBy read_by(const std::string& path, unsigned threads) {
  ReadBy out;
  auto reader = TsvReader::open(path);
  EXPECT_TRUE(reader.ok());
  const auto take = [&](const RowPiece& piece) {
    for (std::size_t i = 0; i < 4; ++i) out.sums[i].add(piece.sums[i]);
  };
  if (threads != 0) {
    const RowsTaken taken = take_in_parallel(reader->plain_text().value(), threads, take);
    out.rows_in_parallel = taken.rows;
    EXPECT_TRUE(reader->skip(taken).ok());
  }
  RowBlock block = reader->make_block();
  for (auto more = reader->next(block); more.ok() && *more; more = reader->next(block)) {
    std::vector<ColumnSum> sums;
    for (std::size_t i = 0; i < 4; ++i) sums.push_back(sum_of(block.column(i)));
    take({block, sums});
  }
  out.left_out = reader->left_out().sentences();
  out.lines_left_out = reader->left_out().lines();
  return out;
}

void expect_same(const ReadBy& one, const ReadBy& other) {
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(one.sums[i].values, other.sums[i].values);
    EXPECT_EQ(one.sums[i].first, other.sums[i].first);
    EXPECT_EQ(one.sums[i].last, other.sums[i].last);
    EXPECT_EQ(one.sums[i].min, other.sums[i].min);
    EXPECT_EQ(one.sums[i].max, other.sums[i].max);
    EXPECT_EQ(one.sums[i].falls, other.sums[i].falls);
  }
  EXPECT_EQ(one.left_out, other.left_out);
  EXPECT_EQ(one.lines_left_out, other.lines_left_out);
}

class ParallelRows : public ::testing::Test {
 protected:
  [[nodiscard]] std::string write(const std::string& text) {
    return folder_.file("run" + std::to_string(++files_) + ".tsv", text);
  }

  tests::TempFolder folder_;
  int files_ = 0;
};

TEST_F(ParallelRows, ReadsAWholeFile) {
  const std::string path = write(rows_of(60'000, 1));  // about 2 MB: eight chunks
  const ReadBy serial = read_by(path, 0);
  for (const unsigned threads : {1U, 2U, 3U, 7U}) {
    const ReadBy parallel = read_by(path, threads);
    EXPECT_EQ(parallel.rows_in_parallel, 60'000U);
    expect_same(serial, parallel);
  }
}

TEST_F(ParallelRows, LeavesDamageToTheReader) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 6; ++round) {
    std::string text = rows_of(20'000, 3);
    text[100 + random() % (text.size() - 100)] = "\t\nx"[round % 3];
    const std::string path = write(text);
    const ReadBy parallel = read_by(path, 3);
    EXPECT_LE(parallel.rows_in_parallel, 20'000U);
    expect_same(read_by(path, 0), parallel);
  }
}

TEST_F(ParallelRows, ALastRowThatIsCutShortCostsItsChunkAlone) {
  std::string text = rows_of(40'000, 4);
  text.resize(text.size() - 3);
  const std::string path = write(text);
  const ReadBy parallel = read_by(path, 2);
  EXPECT_GT(parallel.rows_in_parallel, 30'000U);
  ASSERT_EQ(parallel.left_out.size(), 1U);
  expect_same(read_by(path, 0), parallel);
}

TEST_F(ParallelRows, NoticesTimeThatGoesBackBetweenChunks) {
  const std::string rows = rows_of(20'000, 5);
  const std::string again = rows.substr(rows.find('\n') + 1);
  const std::string path = write(rows + again);
  expect_same(read_by(path, 0), read_by(path, 3));
}

TEST_F(ParallelRows, PassesALineThatFillsSeveralChunks) {
  const std::string path = write(rows_of(20'000, 6) + std::string(900'000, 'x') + "\n" +
                                 std::string(3'000'000, '7') + "\n" + "99999999999\t1\t2\t3\n");
  expect_same(read_by(path, 0), read_by(path, 3));
}

TEST_F(ParallelRows, AHeaderWithoutRowsHasNone) {
  const std::string path = write("Time (ns)\ta\tb\tc\n");
  EXPECT_EQ(read_by(path, 2).rows_in_parallel, 0U);
}

TEST_F(ParallelRows, ASummaryIsTheSameByAnyNumberOfThreads) {
  const std::string path = write(rows_of(320'000, 7));  // 12 MB, enough for three threads
  const auto one = summarize(path, 1);
  const auto three = summarize(path, 3);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(one->rows, three->rows);
  for (std::size_t i = 0; i < one->columns.size(); ++i) {
    EXPECT_EQ(one->columns[i].mean, three->columns[i].mean);
    EXPECT_EQ(one->columns[i].highest_rate, three->columns[i].highest_rate);
    EXPECT_EQ(one->columns[i].highest_rate_at_ns, three->columns[i].highest_rate_at_ns);
    EXPECT_EQ(one->columns[i].falls, three->columns[i].falls);
  }
}

}  // namespace
}  // namespace kymo::analysis
