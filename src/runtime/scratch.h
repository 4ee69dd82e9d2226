#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// A scratch directory is on a memory file system. CRIU writes its log and statistics there while it
// runs. If they were on a disk that stalls, CRIU would wait there, could not be killed, and would
// hold its processes as long. Images may be in memory, too (memory_images.h).
//
// Threads: any, one for each directory.

// The names of folders for images in memory begin with this.
inline constexpr std::string_view kImagesPrefix = "images-";

// podman's archive of the files in a container's /dev/shm, in the work directory. Unlike all else
// there, a restore needs it.
inline constexpr char kSharedMemory[] = "/devshm-checkpoint.tar";

// The folders for all scratch directories of this user, on memory file systems in which this user may
// write: /run/kymod-UID and /dev/shm/kymod-UID. They need not exist.
const std::vector<std::string>& scratch_bases();

// Makes a directory in one of these folders, with mode 0700, and that folder if it is missing.
// Errors: permission_denied: the folder belongs to another user; the system's.
Result<void> make_scratch(const std::string& path);

// The path of the scratch directory with this name, in the first of these folders. It depends only on
// the name and on this machine, so a later kymod finds the directory of a kymod that was killed. Empty
// if there is no such folder.
std::string scratch_path(const std::string& name);

// The names of all scratch directories and images in memory of this user.
std::vector<std::string> scratch_names();

// Makes spec.scratch_dir, calls `dump` with that directory as its work directory, and moves the files
// to spec.work_dir, which the texts of the outcome then name. If the disk there does not answer, the
// move goes on in the background. If there is no scratch directory, `dump` works in spec.work_dir. If a part of
// the checkpoint stays there, the outcome is unconfirmed.
//
// Does the same with spec.memory_images, and copies the images to spec.images_dir. If they are not there
// at the deadline, or the disk has no room, they stay in memory and the outcome is unconfirmed. If
// the process runs on, as it does with spec.leave_running, it is an error.
// Errors: those of `dump`; deadline_exceeded; those of bring_images().
Result<DumpOutcome> in_scratch(const DumpSpec& spec,
                               const std::function<Result<DumpOutcome>(const DumpSpec&)>& dump);

// The spec with which in_scratch() has called `dump`. If nothing was made in memory, it is `spec`.
DumpSpec as_dumped(const DumpSpec& spec);

// The paths at which a dump may have a file with this name: in its scratch and its work directory.
std::vector<std::string> in_work_dirs(const DumpSpec& spec, const std::string& name);

// Whether a part of the checkpoint is still in the scratch directory, because the disk has not taken it.
bool is_part_in_scratch(const DumpSpec& spec);

// Moves what a kymod that was killed has left in spec.scratch_dir to spec.work_dir, or removes it if that
// is gone. Moves nothing if one of the two is empty. Waits at most `patience`, and then goes on in the background.
void keep_scratch(const DumpSpec& spec, std::chrono::milliseconds patience);

// Removes the scratch directory with this name, of a checkpoint that is deleted: a disk that is full has not taken its
// files. Waits while they are being moved, for at most `patience`, and then leaves them.
void drop_scratch(const std::string& name, std::chrono::milliseconds patience);

}  // namespace kymo::runtime
