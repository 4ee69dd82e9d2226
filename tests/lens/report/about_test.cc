#include "lens/report/about.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kymo::report {
namespace {

TEST(About, BreaksBetweenItems) {
  EXPECT_EQ(wrapped_list("steps", {"aaaa", "bbbb", "cccc"}, 6, 17),
            "steps aaaa, bbbb,\n      cccc\n");
  EXPECT_EQ(wrapped_list("x", {"longer than the line"}, 3, 10), "x  longer than the line\n");
}

TEST(About, AnythingThatMayStandInMetadataIsShown) {
  EXPECT_EQ(about_lines(nlohmann::json(), 6, 40), "");
  EXPECT_EQ(about_lines(nlohmann::json::parse(R"({"a":[],"b":{},"c":null,"d":-1,"e":1.5})"), 6, 40),
            "about a , b {}, c null, d -1, e 1.5\n");
  EXPECT_EQ(
      about_lines(nlohmann::json::parse(R"({"steps":[{"name":1}],"n_ns":18446744073709551615})"), 6,
                  80),
      "about n 5124095.58 h, steps {\"name\":1}\n");
  EXPECT_EQ(about_lines(nlohmann::json::parse(R"({"\u001b":"\u001b[2J"})"), 6, 40),
            "about ? ?[2J\n");
}

TEST(About, ARequestsStepsAreShownFromItsTimingTreeAndFromOldRecordings) {
  EXPECT_EQ(about_lines(nlohmann::json::parse(R"({"timing":{"name":"dump","duration_ns":9,
                "components":[{"name":"find","duration_ns":1500},
                              {"name":"dump","duration_ns":20000000,"components":[]},
                              {"name":"conclude","duration_ns":9,"unfinished":true}]}})"),
                        8, 80),
            "steps   find 1.50 µs, dump 20 ms, conclude 9 ns so far\n");
  EXPECT_EQ(about_lines(nlohmann::json::parse(R"({"steps":[{"name":"find","duration_ns":1500}]})"),
                        8, 80),
            "steps   find 1.50 µs\n");
}

}  // namespace
}  // namespace kymo::report
