#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// The name of a container's cgroups: the path, without the first "/", that its spec names (linux.cgroupsPath in
// config.json), or else its id.
std::string cgroup_name(std::string_view spec, const std::string& id);

// The processes whose cgroup has one of these names. A name is the end of a cgroup's path, because a container may be in a
// cgroup of the one in which kymod runs. So a container of another runtime may have the same name.
// `others`: leaves out processes in these cgroups (cgroups_in_use()).
// `root`:   replaces /proc in tests.
// Cost: reads one file for each process of the machine.
std::vector<ProcessId> processes_of_cgroups(const std::vector<std::string>& names,
                                            const std::set<std::string>& others = {},
                                            const std::string& root = "/proc");

// The cgroups of these names that have processes, each as /proc/PID/cgroup has it: with its whole path in each hierarchy.
// Before a restore: the cgroups of containers that belong to somebody else.
// Cost: that of processes_of_cgroups().
std::set<std::string> cgroups_in_use(const std::vector<std::string>& names,
                                     const std::string& root = "/proc");

// Kills what a failed restore has left: the processes in such cgroups, but not those in `others`, which had processes
// before the restore (cgroups_in_use()). If its CRIU was killed, no container runtime ends them, and some of them may run
// already. Waits a few seconds for their end.
// If another runtime starts a container under the same name during the restore, its processes are killed.
void kill_half_restored_container(const std::vector<std::string>& names,
                                  const std::set<std::string>& others);

}  // namespace kymo::runtime
