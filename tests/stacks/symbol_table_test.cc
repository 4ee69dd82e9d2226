#include "stacks/symbol_table.h"

#include <gtest/gtest.h>

namespace kymo::stacks {
namespace {

TEST(SymbolTableTest, FindsTheNamesOfAPerfMap) {
  SymbolTable table;
  table.add_perf_map("1000 20 first\n0x1020 0x10 second with spaces\n");
  table.sort();
  EXPECT_EQ(table.find(0x1000), "first");
  EXPECT_EQ(table.find(0x101f), "first");
  EXPECT_EQ(table.find(0x1020), "second with spaces");
  EXPECT_EQ(table.find(0x1030), "");
  EXPECT_EQ(table.find(0xfff), "");
}

TEST(SymbolTableTest, LinesOfAPerfMapThatMakeNoSenseAreLeftOut) {
  SymbolTable table;
  table.add_perf_map(
      "\n \nname\n1000\n1000 10\nxyz 10 no\n1000 -5 no\nffffffffffffffff 10 no\n"
      "11111111111111111111 10 no\n2000 10 yes\r\n3000 10 last");
  table.sort();
  EXPECT_EQ(table.find(0x1000), "");
  EXPECT_EQ(table.find(0x2000), "yes\r");
  EXPECT_EQ(table.find(0x3000), "last");
}

TEST(SymbolTableTest, AnAddressBelongsToTheInnermostFunction) {
  SymbolTable table;
  table.add_perf_map("1000 100 outer\n1040 10 inner\n");
  table.sort();
  EXPECT_EQ(table.find(0x1044), "inner");
  EXPECT_EQ(table.find(0x1060), "outer");
}

TEST(SymbolTableTest, TheKernelsSymbolsEndWhereTheNextBegins) {
  SymbolTable table;
  table.add_kallsyms(
      "ffffffff81000000 T one\nffffffff81000100 t two\nffffffff81000200 d data\n"
      "ffffffff81000300 T three\t[module]\n");
  table.sort();
  EXPECT_EQ(table.find(0xffffffff81000001), "one");
  EXPECT_EQ(table.find(0xffffffff81000250), "two");
  EXPECT_EQ(table.find(0xffffffff81000300), "three");
}

TEST(SymbolTableTest, AddressesThatAreHiddenHaveNoNames) {
  SymbolTable table;
  table.add_kallsyms("0000000000000000 T one\n0000000000000000 T two\n");
  table.sort();
  EXPECT_EQ(table.find(0xffffffff81000001), "");
}

}  // namespace
}  // namespace kymo::stacks
