#include <sys/mman.h>
#include <unistd.h>

#include "profiler/stacks/elf_file.h"
#include "profiler/stacks/inlined.h"
#include "profiler/stacks/symbol_table.h"
#include "targets.h"

namespace kymo::fuzz {

// Reads the bytes as a program or library: its segments, unwind tables, symbols and debug information.
void elf(Bytes data) {
  const FileDescriptor file(::memfd_create("fuzz", MFD_CLOEXEC));
  require(::write(file.get(), data.data(), data.size()) == static_cast<ssize_t>(data.size()),
          "there is room for the file");
  const std::unique_ptr<stacks::ElfFile> read = stacks::ElfFile::open(file);
  if (read == nullptr) return;
  static_cast<void>(read->build_id());
  stacks::SymbolTable table;
  table.add_elf(read->elf());
  table.sort();
  const std::unique_ptr<stacks::DebugInfo> info = stacks::DebugInfo::open(read->elf());
  std::vector<std::uint64_t> addresses{0, 0x1000, 0x401000, ~std::uint64_t{0}};
  for (const stacks::Segment& segment : read->segments()) {
    addresses.push_back(segment.address);
    addresses.push_back(segment.address + segment.size / 2);
  }
  for (const std::uint64_t address : addresses) {
    if (const auto row = read->row_at(address)) {
      const auto said = stacks::row_in(stacks::message_of(row), address);
      require(!said || *said == *row, "a row is read as it was");
    }
    static_cast<void>(table.find(address));
    if (info != nullptr) static_cast<void>(info->lines_at(address));
  }
}

}  // namespace kymo::fuzz
