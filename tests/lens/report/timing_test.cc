#include "lens/report/timing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kymo::report {
namespace {

std::vector<ScopeRecord> failed_dump() {
  std::vector<ScopeRecord> scopes(5);
  scopes[0] = {ScopeRecord::kNoParent, "dump", "", "no", 100, 40'000'000};
  scopes[1] = {0, "find process", "request", "", 110, 1'500};
  scopes[2] = {0, "dump", "runtime", "no", 2'000, 39'000'000};
  scopes[3] = {2, "criu", "criu", "no", 3'000, 37'500'000, 2'097'152};
  scopes[4] = {3, "frozen", "criu", "", 4'000, 30'000'000, 4'096};
  scopes[4].redundant = true;
  return scopes;
}

TEST(TimingTest, TheTableHasEachScopeTheUnaccountedAndTheTotal) {
  EXPECT_EQ(timing_table(failed_dump(), Precision::automatic),
            "  duration  category    bytes  name\n"
            "   1.50 µs  request            find process\n"
            "   1.50 ms  runtime            dump (failed)\n"
            "   37.5 ms  criu        2 MiB    criu (failed)\n"
            "   (30 ms)  criu      (4 KiB)      frozen\n"
            "    998 µs                     unaccounted\n"
            "     40 ms              2 MiB  total\n");
}

TEST(TimingTest, EveryPrecisionHasItsUnit) {
  const auto has = [](Precision precision, const std::string& text) {
    return timing_table(failed_dump(), precision).find("  " + text + "  ") != std::string::npos;
  };
  EXPECT_TRUE(has(Precision::ns, "998,500 ns"));
  EXPECT_TRUE(has(Precision::us, "998.500 µs"));
  EXPECT_TRUE(has(Precision::us, "37,500.000 µs"));
  EXPECT_TRUE(has(Precision::ms, "0.999 ms")) << "998,500 ns are rounded up";
  EXPECT_TRUE(has(Precision::ms, "0.002 ms")) << "1,500 ns";
  EXPECT_TRUE(has(Precision::s, "0.040000 s"));
}

TEST(TimingTest, CategoriesHaveTheirShares) {
  EXPECT_EQ(category_table(failed_dump(), Precision::us),
            "       duration      %  bytes  category\n"
            "       1.500 µs    0.0         request\n"
            "   1,500.000 µs    3.8         runtime\n"
            "  37,500.000 µs   93.8  2 MiB  criu\n"
            "     998.500 µs    2.5         unaccounted\n"
            "  40,000.000 µs  100.0  2 MiB  total\n");
}

TEST(TimingTest, WhatIsCountedTwiceIsSaid) {
  std::vector<ScopeRecord> scopes(2);
  scopes[0] = {ScopeRecord::kNoParent, "dump", "", "", 0, 50};
  scopes[1] = {0, "measured", "", "", 0, 70};
  EXPECT_EQ(timing_table(scopes, Precision::ns),
            "  duration  category  bytes  name\n"
            "     70 ns                   measured\n"
            "      0 ns                   unaccounted\n"
            "    -20 ns                   counted twice\n"
            "     50 ns                   total\n");
  EXPECT_EQ(category_table(scopes, Precision::ns),
            "  duration      %  bytes  category\n"
            "     70 ns  140.0         (none)\n"
            "      0 ns    0.0         unaccounted\n"
            "    -20 ns  -40.0         counted twice\n"
            "     50 ns  100.0         total\n");
}

TEST(TimingTest, TheJsonIsNestedAndLeavesOutEmptyMembers) {
  const nlohmann::json json = timing_json(failed_dump());
  EXPECT_EQ(json["name"], "dump");
  EXPECT_EQ(json["error"], "no");
  EXPECT_EQ(json["components"].size(), 2U);
  EXPECT_EQ(json["components"][0]["name"], "find process");
  EXPECT_FALSE(json["components"][0].contains("error"));
  EXPECT_FALSE(json["components"][0].contains("components"));
  const nlohmann::json& criu = json["components"][1]["components"][0];
  EXPECT_EQ(criu["bytes"], 2'097'152U);
  EXPECT_EQ(criu["start_ns"], 3'000U);
  EXPECT_EQ(criu["components"][0]["redundant"], true);
  EXPECT_FALSE(criu.contains("redundant"));
  EXPECT_FALSE(json.contains("scopes_left_out"));
  std::vector<ScopeRecord> cut = failed_dump();
  cut.front().left_out = 3;
  EXPECT_EQ(timing_json(cut)["scopes_left_out"], 3);
  EXPECT_TRUE(timing_json({}).is_null());
}

}  // namespace
}  // namespace kymo::report
