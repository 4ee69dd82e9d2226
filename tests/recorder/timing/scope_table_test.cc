// How scopes are shown: as a table, and as a histogram of a recording.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kymo/registry.h"
#include "kymo/scope.h"
#include "kymo/timed_scope.h"

namespace kymo {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(ScopeTableTest, HasALineForEachScopeAndWhatIsInNone) {
  ScopeTree tree("request", 6);
  // The request must be longer than its parts. Else the table has one more line, for what is counted twice.
  constexpr std::uint64_t kParseNs = 2'000;
  const std::uint64_t began = monotonic_ns();
  while (monotonic_ns() - began < kParseNs) {
  }
  {
    const EnterScope here(tree);
    add_scope("parse", began, kParseNs, 0, {.category = "cpu"});
    {
      Scope write("write", {.category = "files"});
      add_scope("compress", 1, 1'000'000'000'000, 1 << 20U, {.parallel = true});
      write.fail("the disk is\nfull");
    }
    const Scope open(ScopeName(std::string_view("made\tup")));
    const Scope dropped("one");
    const Scope more("two");
  }
  const std::vector<std::string> lines = lines_of(tree.table());
  ASSERT_EQ(lines.size(), 9U) << tree.table();
  EXPECT_TRUE(lines[0].ends_with("duration  category  bytes  name")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("  2 µs  cpu              parse")) << lines[1];
  EXPECT_NE(lines[2].find("files"), std::string::npos) << lines[2];
  EXPECT_TRUE(lines[2].ends_with("  write (failed: the disk is?full)")) << lines[2];
  EXPECT_TRUE(lines[3].ends_with("(1000 s)            1 MiB    compress")) << lines[3];
  EXPECT_TRUE(lines[4].ends_with("  made?up")) << lines[4];
  EXPECT_TRUE(lines[5].ends_with("    one")) << lines[5];
  EXPECT_TRUE(lines[6].ends_with("  unaccounted")) << lines[6];
  EXPECT_TRUE(lines[7].ends_with("  total")) << lines[7];
  EXPECT_NE(lines[7].find("  1 MiB  total"), std::string::npos) << lines[7];
  EXPECT_EQ(lines[8], "1 scope was left out");
}

class TimedScopeTest : public ::testing::Test {
 protected:
  TimedScopeTest()
      : durations_(
            registry_.histogram({"parse_ns", "Time to parse", Kind::counter, Unit::nanoseconds, {}})
                .value()) {}
  std::uint64_t column(const std::string& name) {
    const auto sampler = registry_.sampler({}).value();
    std::vector<std::uint64_t> row(sampler->columns().size());
    sampler->read(row.data());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (sampler->columns()[i].name == name) return row[i];
    }
    return UINT64_MAX;
  }
  Registry registry_;
  const Histogram durations_;
};

TEST_F(TimedScopeTest, IsInTheTreeAndInTheHistogram) {
  ScopeTree tree("request");
  {
    const EnterScope here(tree);
    TimedScope scope("parse", durations_, {.category = "cpu"});
    scope.add_bytes(5);
    scope.fail("no");
    scope.end();
    scope.end();
  }
  const std::vector<ScopeRecord> records = tree.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].name, "parse");
  EXPECT_EQ(records[1].category, "cpu");
  EXPECT_EQ(records[1].bytes, 5U);
  EXPECT_EQ(records[1].error, "no");
  EXPECT_EQ(column("parse_ns_count"), 1U);
  EXPECT_GE(column("parse_ns_sum"), records[1].duration_ns) << "the scope lies within it";
}

TEST_F(TimedScopeTest, IsInTheHistogramWhereNobodyHasATree) {
  for (int i = 0; i < 3; ++i) {
    const TimedScope scope("parse", durations_);
  }
  EXPECT_EQ(column("parse_ns_count"), 3U);
}

// Before, 2 ms were shown as 2.08 s in a histogram of microseconds.
TEST_F(TimedScopeTest, RecordsInTheUnitOfItsHistogram) {
  const Histogram whole =
      registry_.histogram({"whole_us", "Time", Kind::counter, Unit::microseconds, {}}).value();
  const Histogram sizes =
      registry_.histogram({"sent_bytes", "Bytes", Kind::counter, Unit::bytes, {}}).value();
  {
    const TimedScope outer("outer", durations_);  // lasts longer than the next two
    const TimedScope scope("parse", whole);
    const TimedScope wrong("parse", sizes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(column("whole_us_count"), 1U);
  EXPECT_GE(column("whole_us_sum"), 1000U);
  EXPECT_LE(column("whole_us_sum"), column("parse_ns_sum") / 1000);
  EXPECT_EQ(column("sent_bytes_count"), 0U) << "a duration is no size";
}

}  // namespace
}  // namespace kymo
