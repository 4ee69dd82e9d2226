#pragma once

#include <string>

namespace kymo::cli {

// For verbs that map files of other programs. If such a file is truncated while it is read, the
// program prints `line` on stderr and ends with exit code 1, instead of being killed by SIGBUS.
// Before that, it writes `screen` to stdout, to restore the terminal.
void end_where_truncated(const std::string& line, const std::string& screen = "");

}  // namespace kymo::cli
