#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Makes the state directory, with mode 0700, and locks it for this daemon for as long as the
// descriptor is open. A symbolic link is followed if it belongs to this process' user or to root.
// Errors: already_exists: another daemon uses it; permission_denied: others could write into it
//         (open_own_folder()); the system's.
Result<FileDescriptor> take_state_dir(const std::string& path);

}  // namespace kymo::daemon
