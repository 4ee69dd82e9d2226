#pragma once

#include <string>

namespace kymo {

// Makes the program's log: lines on stderr, made printable, of this level and above.
//
// Logging never waits for the reader of stderr. Up to 1,000 lines (1 MiB) are kept in memory;
// further ones are dropped, and their number is logged later. At exit, at most one second is spent
// on writing what is left.
void begin_log(const std::string& level);
// Waits, for a second at most, until what was logged is written. Threads that still run may go on
// logging.
void end_log();

// Writes a line to stderr without the log. Waits for the reader for a second at most in all.
void print_line(const std::string& line);

}  // namespace kymo
