#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kymo::probe {

// Returns the processes that have this very file open for writing, ordered by pid. Empty if the
// file does not exist or is a link. Descriptors that this user may not see are not found.
// Cost: one look at each file descriptor of the machine, some milliseconds.
std::vector<pid_t> processes_writing(const std::string& path);

}  // namespace kymo::probe
