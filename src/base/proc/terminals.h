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

// Returns the first terminal that one of the processes has open and that none of them created, such
// as the terminal of a window or of an SSH login. It belongs to a process outside, so no restore
// can bring it back. Returns nothing if there is no such terminal. Terminals that `external` names
// in the words of CRIU's --external, "tty[RDEV:DEV]", are left out: a restore gets others for them.
// `root` replaces /proc in tests.
//
// Threads: any.
// Cost:    one system call for each open descriptor, two for a device.
std::optional<OpenTerminal> outside_terminal(const std::vector<pid_t>& processes,
                                             const std::vector<std::string>& external = {},
                                             const std::string& root = "/proc");

}  // namespace kymo::probe
