#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "stacks/elf_reader.h"
#include "stacks/frame_row.h"

namespace kymo::stacks {

// What is known of a program or library: where its segments are, and those rows for the unwinder that were asked for.
//
// Threads: one.
class ElfLayout {
 public:
  // `fd` stays open as long as the layout; -1: the vDSO. Null if it is no ELF file for this kind of machine.
  static std::unique_ptr<ElfLayout> read(std::shared_ptr<ElfReader> reader, int fd);
  ~ElfLayout();
  ElfLayout(const ElfLayout&) = delete;
  ElfLayout& operator=(const ElfLayout&) = delete;

  // The address that the linker gave to the byte at this offset of the file.
  [[nodiscard]] std::optional<std::uint64_t> address_at(std::uint64_t offset) const;
  // Null if the file says nothing about the address. Valid until the next call. Cost: a search in a tree, after the
  // first call for an address between two instructions that change the frame.
  [[nodiscard]] const FrameRow* row_at(std::uint64_t address);

 private:
  ElfLayout(std::shared_ptr<ElfReader> reader, int fd);

  std::shared_ptr<ElfReader> reader_;
  ElfReader::File file_;
  std::vector<Segment> segments_;
  std::map<std::uint64_t, std::optional<FrameRow>>
      rows_;              // by their begin; those with nothing are of one byte
  bool refused_ = false;  // to read it has ended a process, so it is not read again
};

}  // namespace kymo::stacks
