#pragma once

#include <string>

namespace kymo::cli {

// For verbs that read files that others have mapped, too: from now on such a file that is truncated
// while it is read ends the program with `line` on stderr and exit code 1, rather than by a SIGBUS.
// `screen` goes to stdout first: what gives a terminal back.
void end_where_truncated(const std::string& line, const std::string& screen = "");

}  // namespace kymo::cli
