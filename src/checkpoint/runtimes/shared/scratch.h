#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

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

// Makes spec.scratch_dir and spec.memory_images, and calls `dump` with them as its work directory and its directory of
// images. What cannot be made is a warning, and `dump` works on the disk. In the texts of the outcome, files have the
// paths that they get later. Whoever concludes the dump moves the files (keep_scratch()) and the images
// (bring_images() or drop_memory_images()).
// Errors: those of `dump`.
Result<DumpOutcome> in_scratch(const DumpSpec& spec,
                               const std::function<Result<DumpOutcome>(const DumpSpec&)>& dump);

// The spec with which the images of a dump were written: it has the directory in memory, if there is one.
DumpSpec as_dumped(const DumpSpec& spec);

// The paths at which a dump may have a file with this name: in its scratch and its work directory.
std::vector<std::string> in_work_dirs(const DumpSpec& spec, const std::string& name);

// Whether a part of the checkpoint is still in the scratch directory, because the disk has not taken it.
bool is_part_in_scratch(const DumpSpec& spec);

// Moves what a dump has left in its scratch directory to its work directory, or removes it if that
// is gone. Waits until the disk answers.
void keep_scratch(const std::string& scratch_dir, const std::string& work_dir);

// Removes the scratch directory with this name, of a checkpoint that is deleted: a disk that is full
// has not taken its files.
void drop_scratch(const std::string& name);

}  // namespace kymo::runtime
