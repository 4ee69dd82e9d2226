#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::confine {

// What a process that reads a foreign file may still do.
struct Bounds {
  std::vector<std::string> readable;  // files and folders, with what is below; no other is opened
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // of address space
  std::chrono::seconds cpu_time{60};
  std::uint64_t answer_bytes = std::uint64_t{16} << 20;
};

// Takes away from this process, for good, all that reading needs not: it opens no file but
// `readable` and none to write, starts no process and no thread, has no network and no capability
// (but, of root's, the one to read what its owner keeps to himself), and ends when it goes beyond
// its bounds. The descriptors that it has open it keeps.
//
// Landlock (Linux 5.13) keeps it to `readable`; where the kernel has none, it can read more. A
// build with sanitizers, which need more calls and memory than that, is not bounded in either.
// Threads: the only one. Errors: unimplemented: the kernel has no seccomp; the system's.
Result<void> confine_self(const Bounds& bounds);

// Makes the filter of system calls now, so that each child of this process need not make it again.
void prepare();

// Of a confined process that a signal ended: resource_exhausted.
Error reader_died();

}  // namespace kymo::confine
