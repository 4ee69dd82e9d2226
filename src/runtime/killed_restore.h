#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// When the folder was made, in clock ticks since boot, like the start time of a process. Later than any time if
// its file system does not say.
std::uint64_t made_at_ticks(const std::string& folder);

// In a restore, runc mounts the container's root in its folder of the container, as criu-root. A runc that is killed leaves it
// there. Whoever deletes the folder then (`runc delete --force`, which podman, containerd and Docker call by themselves) deletes
// the files of the root through that mount. This detaches each such mount, unless a runc restores that container now.
// Call it before anything else looks at containers.
// Cost: one read of /proc/self/mountinfo; for each such mount, one look at each process of the machine.
void detach_roots_of_killed_restores();

// Removes what is left of a restore whose runc was killed together with kymod: half-restored processes, and in
// runc's folder of the container its root, mounted as criu-root. runc writes state.json at the end of a restore, so
// it knows no such container, but takes the name for used. The files of the root stay.
// `id`:       the container's id for runc, which is the name of its folder.
// `usual_folder`: where it is unless the runtime is told otherwise. Other places are found by the mount.
// `cgroups`:  see container_processes.h.
// `work_dir`: of CRIU, whose log names the mounts that it has made.
// Errors:     failed_precondition if the folder must be left as it is: a restore of the container goes on, or a process
//             in the cgroups is older than the folder and belongs to somebody else. Do not restore then: runc would be
//             asked to delete the folder first, and would delete the files of the root through that mount.
// Cost:       one read of /proc/self/mountinfo; if something is left, one look at each process of the machine.
Result<void> remove_killed_restore(const std::string& id, const std::string& usual_folder,
                                   const std::vector<std::string>& cgroups,
                                   const std::string& work_dir);

}  // namespace kymo::runtime
