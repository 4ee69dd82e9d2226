#include "profiler/stacks/symbol_table.h"

#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>

#include "profiler/stacks/elf_file.h"

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

// Their time was shown as that of _init, which has no size and stands before them.
TEST(SymbolTableTest, TheCallsOfOtherModulesAreNotTakenForTheFunctionBeforeThem) {
  const FileDescriptor program(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::unique_ptr<ElfFile> file = ElfFile::open(program);
  ASSERT_NE(file, nullptr);
  SymbolTable table;
  table.add_elf(file->elf());
  table.sort();
  std::size_t names = 0;
  ASSERT_EQ(elf_getshdrstrndx(file->elf(), &names), 0);
  int found = 0;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file->elf(), section)) != nullptr) {
    GElf_Shdr header{};
    ASSERT_NE(gelf_getshdr(section, &header), nullptr);
    const std::string name = elf_strptr(file->elf(), names, header.sh_name);
    if (!name.starts_with(".plt")) continue;
    ++found;
    EXPECT_EQ(table.find(header.sh_addr), name);
    EXPECT_EQ(table.find(header.sh_addr + header.sh_size - 1), name);
  }
  EXPECT_GT(found, 0);
}

TEST(SymbolTableTest, AddressesThatAreHiddenHaveNoNames) {
  SymbolTable table;
  table.add_kallsyms("0000000000000000 T one\n0000000000000000 T two\n");
  table.sort();
  EXPECT_EQ(table.find(0xffffffff81000001), "");
}

}  // namespace
}  // namespace kymo::stacks
