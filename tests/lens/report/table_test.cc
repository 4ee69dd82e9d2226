#include "lens/report/table.h"

#include <gtest/gtest.h>

namespace kymo::report {
namespace {

TEST(TableTest, NamesAreAlignedToTheLeftAndFiguresToTheRight) {
  Table table({{"NAME", Table::Align::left}, {"TIME"}, {"NOTE", Table::Align::left}});
  EXPECT_TRUE(table.empty());
  table.add({"a", "12.3 µs", ""});
  table.add({"longer\n", "4 ms", "slow"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.str(),
            "  NAME        TIME  NOTE\n"
            "  a        12.3 µs\n"
            "  longer?     4 ms  slow\n");
  EXPECT_EQ(table.str(0).find("NAME"), 0U);
}

TEST(TableTest, RowsWithoutHeadingsMayHaveDifferentNumbersOfCells) {
  EXPECT_EQ(columns({{"a", "12.3 µs", "slow"}, {"longer\n", "4 ms"}, {}, {"a cell alone"}}),
            "a             12.3 µs  slow\n"
            "longer?       4 ms\n"
            "\n"
            "a cell alone\n");
  EXPECT_EQ(columns({}), "");
}

// kymo ps broke each line of a terminal at a long command.
TEST(TableTest, OneColumnGivesWayToTheWidth) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "COMMAND", "NOTE"}, {"web", "/usr/bin/server --of a --b", ""}, {"b", "sh", "held"}};
  const std::string whole = columns(rows);
  shorten_column(rows, 1, 38);
  EXPECT_EQ(columns(rows), whole);
  shorten_column(rows, 1, 37);
  EXPECT_EQ(columns(rows),
            "NAME  COMMAND                    NOTE\n"
            "web   /usr/bin/server --of a ..\n"
            "b     sh                         held\n");
  shorten_column(rows, 1, 10);
  EXPECT_EQ(rows[1][1], "/usr/bin/serve..");
}

}  // namespace
}  // namespace kymo::report
