#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// The processes that end when `first` ends, and that no dump of it has: those that others have started in the pid
// namespace whose first process it is, such as the commands of `docker exec`. Empty if it is not the first process of a
// pid namespace. `root` replaces /proc in tests.
// Cost: reads one link for each process of the machine.
std::vector<pid_t> companions_of(pid_t first, const std::string& root = "/proc");

// Refuses to dump and end a container that has such processes. Waits a second for their end, because the commands of
// health checks end soon.
// Errors: failed_precondition, one line that begins with `tried`.
Result<void> refuse_companions(const std::string& tried, pid_t first);

}  // namespace kymo::runtime
