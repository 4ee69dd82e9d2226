#include "lens/report/scopes.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace kymo::report {
namespace {

TEST(RecordedScopesTest, TheTableHasALineForAllOfOneNameInTheSamePlace) {
  analysis::Metadata metadata;
  metadata.start_monotonic_ns = 1000;
  EXPECT_EQ(scope_table(metadata), "");
  metadata.about = std::make_shared<nlohmann::json>(
      nlohmann::json::parse(R"({"timing": {"name": "dump", "start_ns": 1000, "duration_ns": 5}})"));
  EXPECT_EQ(scope_table(metadata), "") << "the report shows the steps of a request elsewhere";
  metadata.scopes = std::make_shared<nlohmann::json>(nlohmann::json::parse(R"([
      {"name": "request", "start_ns": 2000, "duration_ns": 3000000, "thread": 4, "components": [
        {"name": "parse", "start_ns": 2000, "duration_ns": 1000000, "thread": 4},
        {"name": "parse", "start_ns": 1003000, "duration_ns": 500000, "thread": 5}]},
      {"name": "parse", "start_ns": 7000, "duration_ns": 2000, "thread": 4},
      {"name": "request", "start_ns": 9000, "duration_ns": 1000000, "thread": 6},
      "damaged"])"));
  EXPECT_EQ(scope_table(metadata),
            "\nSCOPE    times    total    mean  longest  threads\n"
            "request      2     4 ms    2 ms     3 ms        2\n"
            "  parse      2  1.50 ms  750 µs     1 ms        2\n"
            "parse        1     2 µs    2 µs     2 µs        1\n");
  const std::vector<RecordedScope> all = scopes_of(metadata);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].name, "dump");
  EXPECT_EQ(all[2].parent, 1U);
  EXPECT_EQ(all[2].start_ns, 1000);
}

}  // namespace
}  // namespace kymo::report
