#pragma once

#include <string>

#include "daemon/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A path that a request names, as the system will take it: without `.` and `..`, and with
// --allow-directory without links, so that what is checked is what is used. What of it does not
// exist yet may be made.
//
// Errors: invalid_argument for one that is not absolute, or holds a NUL; permission_denied for one
// that leads out of the directories that kymod was given, also by links. `tried` begins the
// message.
Result<std::string> allowed_path(const Config& config, const std::string& tried,
                                 const std::string& path);

// A name that others chose, as a part of a path: one folder, whatever they chose.
std::string as_file_name(const std::string& name);

}  // namespace kymo::daemon
