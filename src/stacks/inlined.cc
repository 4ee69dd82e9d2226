#include "stacks/inlined.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxUnits = 1'000'000;
constexpr std::size_t kMaxRanges = 10'000'000;
constexpr std::size_t kMaxInlined = 64;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Scopes = std::unique_ptr<Dwarf_Die[], Free>;

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

// The scopes around an address, from the innermost up to the unit.
std::span<Dwarf_Die> scopes_at(Dwarf_Die& unit, std::uint64_t address, Scopes& owner) {
  Dwarf_Die* found = nullptr;
  const int inner = dwarf_getscopes(&unit, address, &found);
  const Scopes innermost(found);
  if (inner <= 0) return {};
  // The scopes around an inlined function are here where it was written, and not where it was put.
  const int count = dwarf_getscopes_die(&innermost[0], &found);
  if (count <= 0) return {};
  owner.reset(found);
  return {found, static_cast<std::size_t>(count)};
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
  return info->ranges_.empty() ? nullptr : std::move(info);
}

DebugInfo::DebugInfo(Dwarf* dwarf) : dwarf_(dwarf) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  for (std::size_t i = 0; i < kMaxUnits && ranges_.size() < kMaxRanges; ++i) {
    if (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) != 0) break;
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    std::ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(&die, offset, &base, &begin, &end)) > 0) {
      if (begin < end) ranges_.push_back({begin, end, die});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

DebugInfo::~DebugInfo() {
  dwarf_end(dwarf_);
}

Dwarf_Die* DebugInfo::unit_at(std::uint64_t address) {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin() || address >= std::prev(after)->end) return nullptr;
  return &std::prev(after)->unit;
}

std::vector<Line> DebugInfo::lines_at(std::uint64_t address) {
  Dwarf_Die* const unit = unit_at(address);
  if (unit == nullptr) return {};
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
  Scopes owner;
  for (Dwarf_Die& scope : scopes_at(*unit, address, owner)) {
    const int tag = dwarf_tag(&scope);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    here.function = name_of(scope);
    if (!here.function.empty()) lines.push_back(here);
    if (tag == DW_TAG_subprogram || lines.size() >= kMaxInlined) break;
    here = {};
    set_call(*unit, scope, here);
  }
  return lines;
}

}  // namespace kymo::stacks
