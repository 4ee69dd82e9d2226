#pragma once

#include <string>

namespace kymo {

// Makes the program's log: lines on stderr, made printable, of this level and above.
//
// Nothing waits for who reads stderr: while it cannot be written to, a thousand lines wait in
// memory, and those beyond are counted, and told of once it can. At the program's end what waits is
// given a second.
void begin_log(const std::string& level);
void end_log();

}  // namespace kymo
