#pragma once

#include <string>

#include "daemon/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Checks a path that a request names, and returns the path to use instead: without `.` and `..`.
// With --allow-directory, links are resolved too, so that the path that was checked is the one that
// is used. The last parts of the path need not exist yet.
//
// Errors: invalid_argument: the path is not absolute, or contains a NUL.
//         permission_denied: the path leads, perhaps through links, out of the state directory and
//         the directories of --allow-directory.
//         The system's error if links cannot be resolved.
//         Each message begins with `tried`.
Result<std::string> allowed_path(const Config& config, const std::string& tried,
                                 const std::string& path);

// Makes a name that somebody else chose safe as one part of a path, without `/`, `.` and `..`.
std::string as_file_name(const std::string& name);

}  // namespace kymo::daemon
