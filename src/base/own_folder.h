#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

// Folders and files that only this process' user and root can change.
//
// A step of a path is a folder, a symbolic link, or the file at its end. Each step, also of the targets
// of links, must be owned by one of the two, and must give nobody else the right to write. Others may
// write into a folder on the way if it is sticky, like /tmp, because there they cannot replace what
// belongs to one of the two. No step may be on a FUSE file system of another user.
//
// If every step passed, no other user can change them later. So the path can then be used as safely as a
// descriptor, also by another program such as CRIU.
namespace kymo {

// Opens a folder into which only this process' user and root can write: it is not a symbolic link,
// one of the two owns it, and it has no write permission for group or others. Does not check the folders
// above it.
// Errors: permission_denied, with what to do about it; those of open(2). The messages begin with
//         the path.
Result<FileDescriptor> open_own_folder(const std::string& path);

// Checks the steps of a path, as far as it exists.
// Errors: permission_denied, which names the step and its owner or its mode, and has no errno; those of
//         openat(2). The messages begin with the step.
Result<void> check_own_path(const std::string& path);

// Checks the steps of the path of a file that is to be made. Its folder must exist. It may be sticky, because
// there others cannot replace a file once it is made: make the file with O_EXCL, so that it is not theirs.
// Errors: as for check_own_path(); those of opening the folder.
Result<void> check_place_of(const std::string& file);

// Checks the steps of a path, and opens what is at its end (O_PATH). That must not be a sticky folder
// into which others may write.
// Errors: as for check_own_path(); not_found.
Result<FileDescriptor> open_own_path(const std::string& path);

// The same for a folder. Makes it, with mode 0700, and the missing folders above it, with mode 0755.
// Checks each step before it makes the next one.
// Errors: as for open_own_path(); those of mkdirat(2).
Result<FileDescriptor> make_own_folder(const std::string& path);

// Checks a folder like open_own_path(), and each file in it. Links in it are checked as paths. Does not
// look into its folders.
// Errors: as for open_own_path(); those of reading the folder.
Result<void> check_own_files(const std::string& folder);

}  // namespace kymo
