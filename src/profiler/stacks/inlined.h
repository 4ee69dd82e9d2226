#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kymo::stacks {

// A function, and the line of it that is executed or that calls.
struct Line {
  std::string function;  // as in the source, with namespaces and parameters
  std::string file;      // empty, with line 0, if they are not known
  unsigned line = 0;
};

// What the debugging information of a module says about an address.
//
// Threads:   one.
// Ownership: uses the ELF file, which must live as long as this object.
class DebugInfo {
 public:
  // Null if the file has none.
  static std::unique_ptr<DebugInfo> open(Elf* elf);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // The functions at an address: first those that the compiler has put into the others, the
  // innermost one first, and at the end the function that was compiled. Empty if there is nothing
  // about the address.
  // Cost: for the first address of a compilation unit, a walk through all of its functions, milliseconds for a
  // large one; then a walk through one function.
  std::vector<Line> lines_at(std::uint64_t address);

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    Dwarf_Die die;
  };

  // What has an address, by its code.
  using Ranges = std::vector<Range>;

  explicit DebugInfo(Dwarf* dwarf);
  static void add_ranges(Dwarf_Die& die, Ranges& ranges);
  static void add_functions(Dwarf_Die parent, int depth, std::size_t& left, Ranges& functions);
  static void sort(Ranges& ranges);
  static Dwarf_Die* at(Ranges& ranges, std::uint64_t address);
  Dwarf_Die* function_at(const Dwarf_Die& unit, std::uint64_t address);

  Dwarf* dwarf_;
  Ranges units_;
  std::map<const void*, Ranges> functions_;  // those that were compiled, by the unit's address
};

// The name of a C++ function as in the source; other names unchanged.
std::string demangled(const char* name);

}  // namespace kymo::stacks
