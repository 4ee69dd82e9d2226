#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace kymo::stacks {

// A program or library: where its segments are, and how its stack frames are unwound. Its author is
// not trusted: it is read with read(2) and never mapped, because it may be truncated meanwhile.
//
// Threads: one.
class ElfFile {
 public:
  // What the unwinder has to do at an address: libdw's row of call frame information. Valid until
  // the next call of row_at().
  struct Row {
    Dwarf_Frame* frame = nullptr;
    bool signal = false;  // the kernel made this frame to call a signal handler
  };

  // Null if the file is no ELF file for this kind of machine.
  static std::unique_ptr<ElfFile> open(const FileDescriptor& file);
  // The vDSO of this process, which all processes of the machine have.
  static std::unique_ptr<ElfFile> vdso();
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // The address that the linker gave to the byte at this offset of the file.
  [[nodiscard]] std::optional<std::uint64_t> address_at(std::uint64_t offset) const;
  // Null if the file says nothing about the address. Cost: a search in a tree, after the first call
  // for an address between two instructions that change the frame.
  [[nodiscard]] const Row* row_at(std::uint64_t address);
  [[nodiscard]] Elf* elf() const { return elf_; }
  // In hexadecimal digits; empty if there is none.
  [[nodiscard]] std::string build_id() const;

 private:
  struct Segment {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t address;
  };
  struct Rows;

  explicit ElfFile(Elf* elf);
  static std::unique_ptr<ElfFile> over(Elf* elf);

  Elf* elf_;
  std::vector<Segment> segments_;
  std::unique_ptr<Rows> rows_;  // made when the first row is asked for
};

}  // namespace kymo::stacks
