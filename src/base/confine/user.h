#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::confine {

// Gives up root's user, so that no process of root is this process's own. Capabilities are not
// changed. Files are still looked up as root's (fsuid), because a file server may know nothing of
// CAP_DAC_READ_SEARCH.
//
// The process stays root if it may not become another user, if there is no other one (in a user
// namespace, or in a container without CAP_SETUID), and if the file system of a path in `readable`
// serves only root (FUSE without allow_other).
//
// Threads: the only one of the process.
// Errors:  the system's.
Result<void> become_nobody(const std::vector<std::string>& readable);

}  // namespace kymo::confine
