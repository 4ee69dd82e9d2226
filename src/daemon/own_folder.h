#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Opens a folder that nobody but us and root can write into: it is no link, one of the two owns it,
// and it has no write permission for group or others. Errors: permission_denied, with what to do
// about it; those of open(2). Their messages begin with the path.
Result<FileDescriptor> open_own_folder(const std::string& path);

// Whether nobody but us and root can lead a path elsewhere: every folder and link on its way, also
// on the way that its links take, is owned by one of the two, and others may write into a folder
// only where it is sticky, as /tmp is. What of the path is not there is no fault. Errors:
// permission_denied, which names the folder and whose it is; those of lstat(2).
Result<void> check_own_path(const std::string& path);

}  // namespace kymo::daemon
