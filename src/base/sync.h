#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo {

// Waits until a file, or the names in a folder, are on the disk (fsync(2)). Does not follow a link.
// Errors: those of open(2) and fsync(2).
Result<void> sync_path(const std::string& path);

}  // namespace kymo
