#include "report/table.h"

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

}  // namespace
}  // namespace kymo::report
