#pragma once

#include <string>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"

// What everything that starts runc shares. Threads: any.
namespace kymo::runtime {

// The flags of runc's checkpoint and restore for these options.
std::vector<std::string> runc_flags(const CheckpointOptions& options);

// runc's own log in the folder of a dump or restore.
inline constexpr char kRuncLog[] = "/runc.log";
// The flags before the verb with which runc writes a log that last_logged_error() reads.
std::vector<std::string> runc_log_flags(const std::string& log);
// The message of the last error in a log of runc. Empty: there is none.
std::string last_logged_error(const std::string& log);

}  // namespace kymo::runtime
