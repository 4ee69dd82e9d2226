#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::confine {

// Limits for a process that reads a foreign file.
struct Bounds {
  std::vector<std::string> readable;  // files, and folders with all below; no other can be opened
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // of address space
  std::chrono::seconds cpu_time{60};
  std::chrono::seconds time{120};  // in all, also while it waits for a disk; 0: no limit
  std::uint64_t answer_bytes = std::uint64_t{16} << 20;
  bool threads = false;  // whether it may start threads
};

// Takes away from this process, for good, every right that reading does not need. The process:
// - can open only the files in `readable`, and none for writing;
// - can start no process, no thread unless its bounds allow threads, and has no network;
// - has no capability, except for CAP_DAC_READ_SEARCH if it had it;
// - cannot get more memory than its bounds allow, and is killed when its CPU time or its time is
//   used up.
// It keeps the descriptors that it has open, and can still write to them.
//
// Landlock (Linux 5.13) enforces `readable`. If the kernel does not have it, the process can read
// other files as well. A build with sanitizers, which need more system calls and memory, has no
// limit on system calls, memory and CPU time.
//
// Threads: the only one of the process.
// Errors:  unimplemented: the kernel has no seccomp; the system's.
Result<void> confine_self(const Bounds& bounds);

// Makes the filter of system calls now, so that the children of this process need not make it.
void prepare();

// The error for a confined process that was killed by a signal or gave no answer:
// resource_exhausted.
Error reader_died();

}  // namespace kymo::confine
