#pragma once

#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace kymo::runtime {

// The processes in cgroups that have the name of the container's: the last part of the path that its bundle names
// (linux.cgroupsPath), or else its id. A container of another runtime may have such a cgroup, too. `root` replaces
// /proc in tests.
// Cost: reads one file for each process of the machine.
std::vector<ProcessId> processes_of_cgroup(const std::string& container, const std::string& bundle,
                                           const std::string& root = "/proc");

// Kills what a failed restore has left: the processes in such cgroups. runc does not end them if its CRIU was killed, and some
// of them may run already. Waits a few seconds for their end.
// Do not call it if there were some before the restore: they belong to somebody else. If another runtime starts a container under the same name during the restore, its processes are killed, because
// they share the cgroup.
void kill_half_restored_container(const std::string& container, const std::string& bundle);

}  // namespace kymo::runtime
