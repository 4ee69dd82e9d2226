#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Makes the state directory, with mode 0700, and locks it for this daemon for as long as the
// descriptor is open. A symbolic link is followed if it belongs to this process' user or to root.
// Takes away the rights of other users to a directory that was there before, but not those of its
// group.
// Errors: already_exists: another daemon uses it; permission_denied: others could write into it
//         (open_own_folder()), or replace it (check_own_path()); the system's.
Result<FileDescriptor> take_state_dir(const std::string& path);

}  // namespace kymo::daemon
