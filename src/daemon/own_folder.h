#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Opens a folder that nobody but us and root can write into: it is no link, one of the two owns it,
// and it has no write permission for group or others. Errors: permission_denied, with what to do
// about it; those of open(2). Their messages begin with the path.
Result<FileDescriptor> open_own_folder(const std::string& path);

}  // namespace kymo::daemon
