#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Opens a folder into which only this process' user and root can write: it is not a symbolic link,
// one of the two owns it, and it has no write permission for group or others.
// Errors: permission_denied, with what to do about it; those of open(2). The messages begin with
//         the path.
Result<FileDescriptor> open_own_folder(const std::string& path);

// Checks that only this process' user and root can make a path lead to another place. Every folder
// and symbolic link of the path, and of the targets of its links, must be owned by one of the two.
// Others may write into a folder only if it is sticky, like /tmp. A part of the path that does not
// exist is no error.
// Errors: permission_denied, which names the folder and its owner or its mode; those of lstat(2).
Result<void> check_own_path(const std::string& path);

}  // namespace kymo::daemon
