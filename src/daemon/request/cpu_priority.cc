#include "daemon/request/cpu_priority.h"

#include <unistd.h>

#include "base/file.h"
#include "probe/cgroup.h"

namespace kymo::daemon {

// The kernel leaves a session without a group of its own if its cgroup is not the root of the CPU controller (sched(7)).
diagnosis::Priority priority_here(const std::string& proc, const std::string& sys) {
  const auto v2 = probe::cgroup_path(::getpid(), "", proc);
  if (v2 && ::access((sys + *v2 + "/cpu.weight").c_str(), F_OK) == 0) {
    return diagnosis::Priority::cgroup;
  }
  const auto v1 = probe::cgroup_path(::getpid(), "cpu", proc);
  if (v1 && *v1 != "/") return diagnosis::Priority::cgroup;
  // A kernel without autogroups has no such file.
  const Result<std::string> enabled = read_file(proc + "/sys/kernel/sched_autogroup_enabled");
  return enabled && enabled->starts_with('1') ? diagnosis::Priority::autogroup
                                              : diagnosis::Priority::nice;
}

}  // namespace kymo::daemon
