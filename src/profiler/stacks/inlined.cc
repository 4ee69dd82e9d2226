#include "profiler/stacks/inlined.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxUnits = 1'000'000;
constexpr std::size_t kMaxRanges = 10'000'000;
constexpr std::size_t kMaxInlined = 64;
// Of a unit. The siblings in a file that somebody has tampered with may go round in a circle.
constexpr std::size_t kMaxEntries = 20'000'000;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::string name_of(Dwarf_Die& function) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    Dwarf_Attribute attribute;
    if (const char* text = dwarf_formstring(dwarf_attr_integrate(&function, name, &attribute))) {
      return demangled(text);
    }
  }
  return {};
}

unsigned number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(&die, name, &attribute), &value) == 0
             ? static_cast<unsigned>(value)
             : 0;
}

// Where the function of an inlined one calls it.
void set_call(Dwarf_Die& unit, Dwarf_Die& inlined, Line& caller) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const std::size_t file = number_of(inlined, DW_AT_call_file);
  if (dwarf_getsrcfiles(&unit, &files, &count) == 0 && file < count) {
    const char* const name = dwarf_filesrc(files, file, nullptr, nullptr);
    if (name != nullptr) caller.file = name;
  }
  caller.line = number_of(inlined, DW_AT_call_line);
}

// The function and those that are inlined into it at the address, the innermost one first.
std::vector<Dwarf_Die> inlined_at(const Dwarf_Die& function, std::uint64_t address) {
  constexpr int kMaxDepth = 256;
  std::vector<Dwarf_Die> path{function};
  Dwarf_Die scope = function;
  Dwarf_Die child;
  std::size_t left = kMaxEntries;
  for (int depth = 0; depth < kMaxDepth && dwarf_child(&scope, &child) == 0; ++depth) {
    int tag = 0;
    const auto holds = [&] {
      tag = dwarf_tag(&child);
      return (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
             dwarf_haspc(&child, address) > 0;
    };
    int next = 0;
    while (!holds() && (next = --left == 0 ? 1 : dwarf_siblingof(&child, &child)) == 0) {
    }
    if (next != 0) break;
    if (tag == DW_TAG_inlined_subroutine) path.push_back(child);
    scope = child;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::string demangled(const char* name) {
  constexpr std::size_t kMaxLength = 4096;
  if (std::strncmp(name, "_Z", 2) != 0 || ::strnlen(name, kMaxLength) == kMaxLength) return name;
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 ? text.get() : name;
}

std::unique_ptr<DebugInfo> DebugInfo::open(Elf* elf) {
  Dwarf* const dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  if (dwarf == nullptr) return nullptr;
  std::unique_ptr<DebugInfo> info(new DebugInfo(dwarf));
  return info->units_.empty() ? nullptr : std::move(info);
}

DebugInfo::DebugInfo(Dwarf* dwarf) : dwarf_(dwarf) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  for (std::size_t i = 0; i < kMaxUnits; ++i) {
    if (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) != 0) break;
    add_ranges(die, units_);
  }
  sort(units_);
}

DebugInfo::~DebugInfo() {
  dwarf_end(dwarf_);
}

void DebugInfo::add_ranges(Dwarf_Die& die, Ranges& ranges) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t offset = 0;
  while (ranges.size() < kMaxRanges &&
         (offset = dwarf_ranges(&die, offset, &base, &begin, &end)) > 0) {
    if (begin < end) ranges.push_back({begin, end, die});
  }
}

// A function that was compiled may be inside a namespace, or inside another function, as that of a lambda.
void DebugInfo::add_functions(Dwarf_Die parent, int depth, std::size_t& left, Ranges& functions) {
  constexpr int kMaxDepth = 64;
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(&parent, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        add_ranges(child, functions);
        [[fallthrough]];
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_lexical_block:
        add_functions(child, depth + 1, left, functions);
        break;
      default:
        break;
    }
  } while (left != 0 && --left != 0 && dwarf_siblingof(&child, &child) == 0);
}

void DebugInfo::sort(Ranges& ranges) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

Dwarf_Die* DebugInfo::at(Ranges& ranges, std::uint64_t address) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges.begin() || address >= std::prev(after)->end) return nullptr;
  return &std::prev(after)->die;
}

Dwarf_Die* DebugInfo::function_at(const Dwarf_Die& unit, std::uint64_t address) {
  const auto [found, added] = functions_.try_emplace(unit.addr);
  if (added) {
    std::size_t left = kMaxEntries;
    add_functions(unit, 0, left, found->second);
    sort(found->second);
  }
  return at(found->second, address);
}

std::vector<Line> DebugInfo::lines_at(std::uint64_t address) {
  Dwarf_Die* const unit = at(units_, address);
  if (unit == nullptr) return {};
  const Dwarf_Die* const function = function_at(*unit, address);
  if (function == nullptr) return {};
  Line here;
  if (Dwarf_Line* const line = dwarf_getsrc_die(unit, address)) {
    const char* const file = dwarf_linesrc(line, nullptr, nullptr);
    int number = 0;
    if (file != nullptr && dwarf_lineno(line, &number) == 0 && number > 0) {
      here.file = file;
      here.line = static_cast<unsigned>(number);
    }
  }
  std::vector<Line> lines;
  for (Dwarf_Die& scope : inlined_at(*function, address)) {
    here.function = name_of(scope);
    if (!here.function.empty()) lines.push_back(here);
    if (lines.size() >= kMaxInlined) break;
    here = {};
    set_call(*unit, scope, here);
  }
  return lines;
}

}  // namespace kymo::stacks
