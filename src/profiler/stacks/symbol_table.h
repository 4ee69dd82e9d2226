#pragma once

#include <libelf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::stacks {

// The names of functions by their addresses.
//
// Threads:   one, after sort() any.
// Ownership: the names are owned by whoever has given them, and must live as long as this object.
class SymbolTable {
 public:
  // The functions in .symtab and .dynsym, and the sections .plt of the calls of other modules.
  void add_elf(Elf* elf);
  // The lines "START SIZE NAME" of a perf map, in hexadecimal digits. Other lines are left out.
  void add_perf_map(std::string_view text);
  // The lines "START TYPE NAME" of /proc/kallsyms. All addresses are 0 for a process that may not
  // see them.
  void add_kallsyms(std::string_view text);
  // Call it after the last add.
  void sort();

  // Empty if there is no function at this address.
  [[nodiscard]] std::string_view find(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin;
    std::uint64_t end;   // `begin` if it is not known: up to the next symbol
    unsigned char rank;  // of symbols at one address the lowest is shown
    std::string_view name;
  };
  void add_section(Elf* elf, Elf_Scn* section);
  void add_plt(Elf* elf, Elf_Scn* section);

  std::vector<Symbol> symbols_;
};

}  // namespace kymo::stacks
