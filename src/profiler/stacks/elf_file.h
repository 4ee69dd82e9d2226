#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "profiler/stacks/frame_row.h"

namespace kymo::stacks {

// A program or library: where its segments are, and how its stack frames are unwound. Its author is
// not trusted, and libelf and libdw read it: use it only in a process without rights, such as that
// of elf_reader.h. It is read with read(2) and never mapped, because it may be truncated meanwhile.
//
// Threads: one.
class ElfFile {
 public:
  // Null if the file is no ELF file for this kind of machine.
  static std::unique_ptr<ElfFile> open(const FileDescriptor& file);
  // The vDSO of this process, which all processes of the machine have.
  static std::unique_ptr<ElfFile> vdso();
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // Nothing if the file says nothing about the address.
  [[nodiscard]] std::optional<FrameRow> row_at(std::uint64_t address);
  [[nodiscard]] Elf* elf() const { return elf_; }
  // In hexadecimal digits; empty if there is none.
  [[nodiscard]] std::string build_id() const;

 private:
  explicit ElfFile(Elf* elf) : elf_(elf) {}
  static std::unique_ptr<ElfFile> over(Elf* elf);

  Elf* elf_;
  std::vector<Segment> segments_;
  std::unique_ptr<Dwarf_CFI, int (*)(Dwarf_CFI*)> rules_{nullptr, &dwarf_cfi_end};
  bool looked_for_rules_ = false;
};

}  // namespace kymo::stacks
