#pragma once

#include <string>
#include <string_view>

namespace kymo::criu {

// The last errors of a CRIU log in one line, oldest first, without timestamps and without those
// that every log has; empty when there are none or the log cannot be read, or its disk does not
// answer. A log that a full disk cut short in the middle of a line has "No space left on device" as
// its last: CRIU could not write that itself. Reads the log's last 256 KiB.
std::string last_errors(const std::string& log_path);

// Whether an error explains nothing, since every run says it, or every failure.
bool is_noise(std::string_view line);

}  // namespace kymo::criu
