#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kymo::probe {

// The processes that have this very file open, in the order of their pids; none where the file is
// not there. Those that another user's descriptors hide are not seen. Cost: one look at each
// descriptor of the machine, some milliseconds.
std::vector<pid_t> processes_with_open(const std::string& path);

}  // namespace kymo::probe
