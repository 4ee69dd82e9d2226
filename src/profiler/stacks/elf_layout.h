#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/stacks/elf_reader.h"
#include "profiler/stacks/frame_row.h"

namespace kymo::stacks {

// What the unwinder knows of a program or library: where its segments are, and the rows that were
// asked for so far.
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
  // The row for the address. Null if the file has none. Valid until the next call.
  // Cost: the first call for an address asks the reader; later calls for addresses of the same row
  //       only search a tree.
  [[nodiscard]] const FrameRow* row_at(std::uint64_t address);

 private:
  ElfLayout(std::shared_ptr<ElfReader> reader, int fd);

  std::shared_ptr<ElfReader> reader_;
  ElfReader::File file_;
  std::vector<Segment> segments_;
  // By their first address. Nothing: the file has no row for this one address.
  std::map<std::uint64_t, std::optional<FrameRow>> rows_;
  bool refused_ = false;  // reading the file has made the reader end, so it is not read again
};

}  // namespace kymo::stacks
