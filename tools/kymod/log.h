#pragma once

#include <string>

namespace kymo {

// Starts the program's log: lines on stderr, made printable, of this level and above.
//
// Logging never waits for the reader of stderr. Up to 1,000 lines (1 MiB) are kept in memory;
// further ones are dropped, and their number is logged later. At exit, at most one second is spent
// on writing what is left.
void begin_log(const std::string& level);
// Waits, for a second at most, until the logged lines are written. Other threads may continue to
// log.
void end_log();

// Writes a line to stderr, bypassing the log. It waits for the reader for at most one second.
void print_line(const std::string& line);

}  // namespace kymo
