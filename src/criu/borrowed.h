#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/mappings.h"

namespace kymo::criu {

// Whether it is one of CRIU's parasite.
inline bool is_parasite(const Mapping& mapping) {
  return mapping.name.find("memfd:CRIUMFD") != std::string::npos;
}

// The processes that `tracer` traces, or one of its process group. Cost: a look at every process of
// the machine.
std::vector<pid_t> traced_by(pid_t tracer, const std::string& root = "/proc");

// Whether a thread that `tracer` traces, or one of its process group, stands in code that is not
// its own, or runs, so that it may. CRIU executes code in the place of a process's: system calls
// that it writes over the begin of an executable mapping, and its parasite, mapped from a memfd
// (compel/src/lib/infect.c). A process whose CRIU is killed meanwhile goes on in that code, and
// ends by SIGTRAP, SIGSEGV, or SIGPIPE where the parasite answers into a closed socket. Where the
// parasite waits for a command it notices that CRIU is gone, and gives the process back. Each lasts
// a millisecond at most, but for the transfer of pages.
//
// To be asked of a tracer that is stopped: what its processes do then ends by itself. True, too,
// where that cannot be seen, as for want of a descriptor. `root` stands in for /proc in tests.
// Cost: a look at every process of the machine.
bool borrows_a_process(pid_t tracer, const std::string& root = "/proc");

// How long whoever wants to kill CRIU waits for the end of it.
inline constexpr std::chrono::milliseconds kMostBorrowing{2000};

// How long CRIU is let go between two looks, the one before being so long ago: longer each time,
// since on a busy machine it waits for a processor first.
inline std::chrono::milliseconds next_look(std::chrono::milliseconds before) {
  return std::min(2 * before, std::chrono::milliseconds(32));
}

}  // namespace kymo::criu
