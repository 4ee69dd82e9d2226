#include "stacks/elf_file.h"

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
constexpr std::size_t kMaxRows = 100'000;  // of a file; about 50 MB

}  // namespace

// The rows that were asked for, by their first address.
struct ElfFile::Rows {
  struct Entry {
    std::uint64_t end = 0;
    Row row;
  };

  explicit Rows(Elf* elf) : cfi(dwarf_getcfi_elf(elf)) {}
  ~Rows() {
    clear();
    if (cfi != nullptr) dwarf_cfi_end(cfi);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void clear() {
    for (auto& [begin, entry] : entries) std::free(entry.row.frame);
    entries.clear();
  }

  Dwarf_CFI* cfi;
  std::map<std::uint64_t, Entry> entries;
};

ElfFile::ElfFile(Elf* elf) : elf_(elf) {}

ElfFile::~ElfFile() {
  rows_.reset();
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

std::optional<std::uint64_t> ElfFile::address_at(std::uint64_t offset) const {
  for (const Segment& segment : segments_) {
    if (offset >= segment.offset && offset - segment.offset < segment.size) {
      return offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

const ElfFile::Row* ElfFile::row_at(std::uint64_t address) {
  if (rows_ == nullptr) rows_ = std::make_unique<Rows>(elf_);
  const auto after = rows_->entries.upper_bound(address);
  if (after != rows_->entries.begin()) {
    const auto found = std::prev(after);
    if (address < found->second.end) return &found->second.row;
  }
  Dwarf_Frame* frame = nullptr;
  if (rows_->cfi == nullptr || dwarf_cfi_addrframe(rows_->cfi, address, &frame) != 0)
    return nullptr;
  Dwarf_Addr begin = address;
  Dwarf_Addr end = address + 1;
  bool signal = false;
  dwarf_frame_info(frame, &begin, &end, &signal);
  if (rows_->entries.size() >= kMaxRows) rows_->clear();
  Rows::Entry& entry = rows_->entries[begin];
  std::free(entry.row.frame);
  entry = {end, {frame, signal}};
  return &entry.row;
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
