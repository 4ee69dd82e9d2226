#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// A process that restores the container now, runc or the podman that starts it; 0 if there is none. `id`: the name of the
// container in runc; a namespace and a slash before it are left out.
// Cost: one look at each process of the machine.
pid_t restored_by(const std::string& id);
bool is_being_restored(const std::string& id);

// When the folder was made, in clock ticks since boot, like the start time of a process. The
// largest value if its file system does not keep that time.
std::uint64_t made_at_ticks(const std::string& folder);

// In a restore, runc mounts the container's root in its own folder of the container, as criu-root.
// If runc is killed, the mount stays there. A program that then deletes the folder (`runc delete
// --force`, which podman, containerd and Docker call by themselves) also deletes the files of the
// root, through that mount. This function detaches each such mount, unless a runc is restoring that
// container now. Call it before anything else looks at containers.
// Cost: one read of /proc/self/mountinfo; for each such mount, one look at each process of the machine.
void detach_roots_of_killed_restores();

// Removes what is left of a restore whose runc was killed together with kymod: half-restored
// processes, and in runc's folder of the container its root, mounted as criu-root. runc writes
// state.json only at the end of a restore. So it does not know the container, but still refuses to
// use its name again. The files of the root stay. If there is a state.json, only the root is detached: then runc can
// delete the rest.
// `id`:       the container's id for runc, which is the name of its folder.
// `usual_folder`: where that folder is by default. If it is elsewhere, it is found by its mount.
// `cgroups`:  see container_processes.h.
// `work_dir`: of CRIU. Its log there names the mounts that CRIU has made.
// Errors:     failed_precondition if the folder must stay as it is: a restore of the container is
//             going on, or a process in the cgroups is older than the folder and so belongs to
//             somebody else. Do not restore then: the restore would first ask runc to delete the
//             folder, and runc would delete the files of the root through that mount; and when it fails, because the
//             other one has made the container run, it would end that container.
// Cost:       one look at each process of the machine and one read of /proc/self/mountinfo.
Result<void> remove_killed_restore(const std::string& id, const std::string& usual_folder,
                                   const std::vector<std::string>& cgroups,
                                   const std::string& work_dir);

}  // namespace kymo::runtime
