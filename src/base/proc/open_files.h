#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace kymo::probe {

// Returns the processes that have this very file open for writing, ordered by pid. Empty if the
// file does not exist or is a link. Descriptors that this user may not see are not found.
// Cost: one look at each file descriptor of the machine, some milliseconds.
std::vector<pid_t> processes_writing(const std::string& path);

struct OpenDescriptor {
  pid_t pid = 0;
  int fd = -1;
  std::string link;  // what /proc/PID/fd/N points to, such as "socket:[123]"
};

// Returns the descriptors of all processes that point to one of these. Those that this user may not
// see are not found. Cost: as processes_writing().
std::vector<OpenDescriptor> descriptors_with(const std::set<std::string>& links,
                                             const std::string& proc = "/proc");

}  // namespace kymo::probe
