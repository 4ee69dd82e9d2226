#pragma once

#include <string>

namespace kymo::criu {

// The last errors of a CRIU log in one line, oldest first, without timestamps and without those
// that every log has; empty when there are none or the log cannot be read. Reads the log's last 256
// KiB.
std::string last_errors(const std::string& log_path);

}  // namespace kymo::criu
