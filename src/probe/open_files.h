#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kymo::probe {

// The processes that have this very file open for writing, in the order of their pids; none where
// the file is not there. Descriptors that this user may not see are not found. Cost: one look at
// each descriptor of the machine, some milliseconds.
std::vector<pid_t> processes_writing(const std::string& path);

}  // namespace kymo::probe
