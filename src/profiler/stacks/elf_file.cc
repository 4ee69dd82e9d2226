#include "profiler/stacks/elf_file.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <array>
#include <cstdio>
#include <utility>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxSegments = 1024;

using FreeFrame = void (*)(void*);

// Adds an expression to the row. Returns false if it is longer than any that a compiler writes.
bool add(const Dwarf_Op* operations, std::size_t count, std::size_t expression, FrameRow& row) {
  constexpr std::size_t kMaxOperationsOfRule = 31;
  if (count > kMaxOperationsOfRule) return false;
  for (std::size_t i = 0; i < count; ++i) {
    row.operations.push_back({operations[i].atom, operations[i].number, operations[i].number2});
  }
  row.ends.at(expression) = static_cast<std::uint8_t>(row.operations.size());
  return true;
}

bool read_frame(Dwarf_Frame* frame, FrameRow& row) {
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &operations, &count) != 0) return false;
  if (!add(operations, count, 0, row)) return false;
  for (std::size_t i = 0; i < kKept.size(); ++i) {
    std::array<Dwarf_Op, 3> place{};
    if (dwarf_frame_register(frame, static_cast<int>(kKept.at(i)), place.data(), &operations,
                             &count) != 0 ||
        !add(operations, count, i + 1, row)) {
      return false;
    }
  }
  return true;
}

}  // namespace

ElfFile::~ElfFile() {
  rules_.reset();
  elf_end(elf_);
}

std::unique_ptr<ElfFile> ElfFile::over(Elf* elf) {
  GElf_Ehdr header{};
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr ||
      header.e_machine != EM_X86_64 || gelf_getclass(elf) != ELFCLASS64) {
    if (elf != nullptr) elf_end(elf);
    return nullptr;
  }
  std::unique_ptr<ElfFile> file(new ElfFile(elf));
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0 || count > kMaxSegments) return file;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) != nullptr && segment.p_type == PT_LOAD) {
      file->segments_.push_back({segment.p_offset, segment.p_filesz, segment.p_vaddr});
    }
  }
  return file;
}

std::unique_ptr<ElfFile> ElfFile::open(const FileDescriptor& file) {
  elf_version(EV_CURRENT);
  return file.valid() ? over(elf_begin(file.get(), ELF_C_READ, nullptr)) : nullptr;
}

std::unique_ptr<ElfFile> ElfFile::vdso() {
  constexpr std::size_t kPages = 2;
  elf_version(EV_CURRENT);
  char* const image = reinterpret_cast<char*>(::getauxval(AT_SYSINFO_EHDR));  // NOLINT: an address
  if (image == nullptr) return nullptr;
  // Its section headers are at its end, and their table's place is in its head.
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const std::size_t size = header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize;
  return size > kPages * 8 * 4096 ? nullptr : over(elf_memory(image, size));
}

std::optional<FrameRow> ElfFile::row_at(std::uint64_t address) {
  if (!std::exchange(looked_for_rules_, true)) rules_.reset(dwarf_getcfi_elf(elf_));
  Dwarf_Frame* found = nullptr;
  if (rules_ == nullptr || dwarf_cfi_addrframe(rules_.get(), address, &found) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<Dwarf_Frame, FreeFrame> frame(found, &std::free);
  FrameRow row;
  Dwarf_Addr begin = address;
  Dwarf_Addr end = address + 1;
  dwarf_frame_info(found, &begin, &end, &row.signal);
  if (!read_frame(found, row)) {
    row.operations.clear();
    row.ends = {};
  }
  row.begin = begin;
  row.end = end;
  return row;
}

std::string ElfFile::build_id() const {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf_, &bytes);
  constexpr ssize_t kMaxBytes = 64;
  std::string text;
  for (ssize_t i = 0; i < size && size <= kMaxBytes; ++i) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<const unsigned char*>(bytes)[i]);
    text += digits.data();
  }
  return text;
}

}  // namespace kymo::stacks
