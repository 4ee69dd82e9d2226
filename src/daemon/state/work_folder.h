#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::daemon {

// CRIU and the runtimes write to what they find in their work folder. Refuses symbolic links there,
// which they would follow, and keeps them from changing a file that has another name elsewhere.
// `tried` begins an error's line.
Result<void> prepare_work_folder(const std::string& tried, const std::string& folder);

}  // namespace kymo::daemon
