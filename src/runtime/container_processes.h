#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/runtime.h"

namespace kymo::runtime {

// The name of a container's cgroups: the path, without the first "/", that its spec names (linux.cgroupsPath in
// config.json), or else its id.
std::string cgroup_name(std::string_view spec, const std::string& id);

// The processes whose cgroup has one of these names. A name is the end of a cgroup's path. A container of another
// runtime may have the same name. `root` replaces /proc in tests.
// Cost: reads one file for each process of the machine.
std::vector<ProcessId> processes_of_cgroups(const std::vector<std::string>& names,
                                            const std::string& root = "/proc");

// Kills what a failed restore has left: the processes in such cgroups. If its CRIU was killed, no container runtime
// ends them, and some of them may run already. Waits a few seconds for their end.
// Do not call it if there were some before the restore: they belong to somebody else. If another runtime starts a
// container under the same name during the restore, its processes are killed, because they share the cgroup.
void kill_half_restored_container(const std::vector<std::string>& names);

}  // namespace kymo::runtime
