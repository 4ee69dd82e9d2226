#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "profiler/stacks/elf_layout.h"

namespace kymo::stacks {

// Where code comes from. Processes that map the same file share its module.
struct Module {
  enum class Kind : std::uint8_t {
    file,    // a program or library
    vdso,    // the kernel's code in each process
    jit,     // memory whose code the process itself has made
    kernel,  // the kernel and its modules
  };

  Kind kind = Kind::file;
  std::string path;     // in the root directory of the process that mapped it first
  FileDescriptor file;  // open, so that it can be read after the process or the file is gone; of
                        // `jit` the perf map, of `kernel` /proc/kallsyms
  std::unique_ptr<ElfLayout> elf;  // of `file` and `vdso`, if it is one
};

// One frame of a stack: an address in a module as the linker gave it, or as it was in memory for
// `jit` and `kernel`. A frame without a module was in none of the process's mappings.
struct Frame {
  const Module* module = nullptr;
  std::uint64_t address = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for a pointer
  auto operator<=>(const Frame&) const = default;
};

}  // namespace kymo::stacks
