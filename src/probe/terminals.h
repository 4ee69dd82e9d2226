#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace kymo::probe {

// A terminal that a process has open.
struct OpenTerminal {
  pid_t pid = 0;
  std::string path;  // "/dev/pts/3", or "/dev/tty"
};

// The first terminal that one of the processes has open and that none of them made: a window's, an
// SSH login's. It lives in a process outside, so no restore can bring it back. None: there is none.
// `root` stands in for /proc in tests.
//
// Threads: any. Cost: a system call an open descriptor.
std::optional<OpenTerminal> outside_terminal(const std::vector<pid_t>& processes,
                                             const std::string& root = "/proc");

}  // namespace kymo::probe
