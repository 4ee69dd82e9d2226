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
  // The open descriptors that it keeps. It also keeps standard output and error, and those that
  // `readable` names (/dev/fd/3, /dev/stdin).
  std::vector<int> descriptors;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // of address space
  std::chrono::seconds cpu_time{60};
  std::chrono::seconds time{120};  // in all, also while it waits for a disk; 0: no limit
  std::uint64_t answer_bytes = std::uint64_t{16} << 20;
  bool threads = false;         // whether it may start threads
  bool receives_files = false;  // whether it may receive open files through its descriptors
};

// Takes away from this process, for good, every right that reading does not need. The process:
// - has no open descriptors but those in its bounds, and standard output and error; its standard
//   input is empty, unless it is in its bounds. It can still write to all of these;
// - can open only the files in `readable`, and none for writing;
// - can start no process, no thread unless its bounds allow threads, has no network, and can send
//   no signal;
// - is the user nobody (65534) and in no other group, if it was root and may become another user
//   (confine/user.h);
// - has no capability, except for CAP_DAC_READ_SEARCH if it had it;
// - cannot get more memory than its bounds allow, and is killed when its CPU time is used up. The
//   end of its time sends it SIGALRM, which a process can ignore: its parent must end it, too.
// It can look whether any path exists, and at its size and times.
//
// Landlock (Linux 5.13) enforces `readable`. If the kernel does not have it, the process can read
// other files as well. A build with sanitizers, which need more system calls and memory, has no
// limit on system calls, memory and CPU time.
//
// Threads: the only one of the process. Objects of the program that own other descriptors must not
//          close them after this.
// Errors:  unimplemented: the kernel has no seccomp; the system's.
Result<void> confine_self(const Bounds& bounds);

// Makes the filter of system calls now, so that the children of this process need not make it.
void prepare();

// The error for a confined process that was killed by a signal or gave no answer:
// resource_exhausted.
Error reader_died();

}  // namespace kymo::confine
