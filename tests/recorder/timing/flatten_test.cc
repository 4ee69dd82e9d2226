#include "recorder/timing/flatten.h"

#include <gtest/gtest.h>

namespace kymo {
namespace {

ScopeRecord record(std::size_t parent, const char* name, std::uint64_t duration_ns,
                   std::uint64_t bytes = 0) {
  ScopeRecord record;
  record.parent = parent;
  record.name = name;
  record.duration_ns = duration_ns;
  record.bytes = bytes;
  return record;
}

ScopeRecord root(std::uint64_t duration_ns) {
  return record(ScopeRecord::kNoParent, "request", duration_ns);
}

// "name duration" of each row. Rows that do not count are in brackets.
std::vector<std::string> rows(const FlatTree& tree) {
  std::vector<std::string> out;
  for (const FlatScope& row : tree.rows) {
    const std::string text = row.name + " " + std::to_string(row.duration_ns);
    out.push_back(row.time_counted ? text : "(" + text + ")");
  }
  return out;
}

std::uint64_t counted(const FlatTree& tree) {
  std::uint64_t sum = tree.unaccounted_ns;
  for (const FlatScope& row : tree.rows) sum += row.time_counted ? row.duration_ns : 0;
  return sum;
}

std::vector<std::size_t> depths(const FlatTree& tree) {
  std::vector<std::size_t> out;
  for (const FlatScope& row : tree.rows) out.push_back(row.depth);
  return out;
}

using Rows = std::vector<std::string>;

TEST(FlattenTest, ADurationExcludesThePartsAndAllSumToTheTotal) {
  const FlatTree tree =
      flatten({root(100), record(0, "find", 10), record(0, "dump", 80, 7), record(2, "criu", 70),
               record(3, "write", 60, 5), record(0, "reply", 6)});
  EXPECT_EQ(rows(tree), (Rows{"find 10", "dump 10", "criu 10", "write 60", "reply 6"}));
  EXPECT_EQ(depths(tree), (std::vector<std::size_t>{0, 0, 1, 2, 0}));
  EXPECT_EQ(tree.unaccounted_ns, 4U);
  EXPECT_EQ(tree.total_ns, 100U);
  EXPECT_EQ(tree.total_bytes, 12U);
  EXPECT_EQ(tree.overlap_ns, 0U);
  EXPECT_EQ(counted(tree), tree.total_ns);
}

TEST(FlattenTest, AWrapperOfZeroDurationLendsItsName) {
  const FlatTree tree =
      flatten({root(100), record(0, "filesystem", 0), record(1, "rootfs", 30),
               record(1, "mounts", 0), record(3, "proc", 20), record(0, "instant", 0)});
  EXPECT_EQ(rows(tree), (Rows{"filesystem:rootfs 30", "filesystem:mounts:proc 20", "instant 0"}));
  EXPECT_EQ(depths(tree), (std::vector<std::size_t>{0, 0, 0})) << "a wrapper has no row";
  EXPECT_EQ(tree.unaccounted_ns, 50U);
  EXPECT_EQ(counted(tree), 100U);
}

TEST(FlattenTest, ParallelPartsAreShownAndTheirBytesCountButNotTheirTime) {
  std::vector<ScopeRecord> records = {root(100), record(0, "dump", 90),
                                      record(1, "compress", 80, 5), record(2, "block", 30, 3)};
  records[2].parallel = true;
  const FlatTree tree = flatten(records);
  EXPECT_EQ(rows(tree), (Rows{"dump 90", "(compress 50)", "(block 30)"}));
  EXPECT_EQ(tree.total_bytes, 8U);
  EXPECT_EQ(counted(tree), 100U);
}

TEST(FlattenTest, RedundantPartsCountNeitherTimeNorBytes) {
  std::vector<ScopeRecord> records = {root(100), record(0, "dump", 90, 5),
                                      record(1, "frozen", 80, 5), record(0, "copy", 10, 5)};
  records[2].redundant = true;
  records[3].bytes_redundant = true;
  const FlatTree tree = flatten(records);
  EXPECT_EQ(rows(tree), (Rows{"dump 90", "(frozen 80)", "copy 10"}));
  EXPECT_EQ(tree.total_bytes, 5U);
  EXPECT_EQ(counted(tree), 100U);
}

TEST(FlattenTest, RowsStandInTheTreesOrderWhereThreadsMixTheirs) {
  std::vector<ScopeRecord> records = {root(10), record(0, "a", 4), record(0, "b", 3),
                                      record(1, "a1", 2), record(2, "b1", 2)};
  EXPECT_EQ(rows(flatten(records)), (Rows{"a 2", "a1 2", "b 1", "b1 2"}));
}

TEST(FlattenTest, PartsThatExceedTheWholeAreSaidToOverlap) {
  const FlatTree tree = flatten({root(100), record(0, "dump", 50), record(1, "measured", 70)});
  EXPECT_EQ(rows(tree), (Rows{"dump 0", "measured 70"}));
  EXPECT_EQ(tree.unaccounted_ns, 50U);
  EXPECT_EQ(tree.overlap_ns, 20U);
  EXPECT_EQ(counted(tree), tree.total_ns + tree.overlap_ns);
}

TEST(FlattenTest, ATreeWithoutPartsHasNoRows) {
  EXPECT_TRUE(flatten({}).rows.empty());
  const FlatTree alone = flatten({root(7)});
  EXPECT_TRUE(alone.rows.empty());
  EXPECT_EQ(alone.unaccounted_ns, 7U);
}

TEST(FlattenTest, CategoriesSumWhatCounts) {
  std::vector<ScopeRecord> records = {root(100), record(0, "dump", 90, 5), record(1, "pipe", 40, 2),
                                      record(0, "read", 3, 1)};
  records[1].category = records[2].category = "criu";
  records[3].category = "files";
  records[2].parallel = true;
  const auto sums = sum_by_category(flatten(records));
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].category, "criu");
  EXPECT_EQ(sums[0].duration_ns, 90U);
  EXPECT_EQ(sums[0].bytes, 7U);
  EXPECT_EQ(sums[1].duration_ns, 3U);
}

}  // namespace
}  // namespace kymo
