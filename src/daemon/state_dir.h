#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Makes the state directory, private, and takes it for this daemon alone for as long as the
// descriptor lives. A link that belongs to us or root is followed. Errors: already_exists: another
// daemon has it; permission_denied: others could write into it (open_own_folder()); the system's.
Result<FileDescriptor> take_state_dir(const std::string& path);

}  // namespace kymo::daemon
