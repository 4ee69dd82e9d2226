#pragma once

#include <string>

namespace kymo::criu {

// Returns the last errors of a CRIU log (at most three) in one line, oldest first, without
// timestamps and without errors that every log has. Empty if there are none, if the log cannot be
// read, or if its disk does not answer. If a full disk cut the log short in the middle of a line,
// the last error is "No space left on device", which CRIU could not write itself. Reads only the
// last 256 KiB of the log.
std::string last_errors(const std::string& log_path);

// Why CRIU failed, on one line: what happened, what to do, the failure's id (docs/errors.md), and
// the line of the log that names the cause. Empty if the log has no such line or says that CRIU
// succeeded, if it cannot be read, or if its disk does not answer. Reads the whole log.
// `full_disk`, `out_of_memory`: see failures::Root. This is the cause if the log names no other that explains it.
std::string cause_in(const std::string& log_path, const std::string& full_disk = {},
                     bool out_of_memory = false);

}  // namespace kymo::criu
