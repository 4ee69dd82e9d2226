#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo {

// A word of mountinfo without its escapes, such as "\040" for a space (proc(5)).
std::string unescaped(const std::string& word);

// Detaches every mount of this mount namespace whose mount point begins with `prefix`, the newest
// first. Pass "FOLDER/" for all mounts below a folder. A mount that cannot be detached stays.
// Errors: the list of mounts cannot be read.
// Cost:   one read of /proc/self/mountinfo.
Result<void> detach_mounts(std::string_view prefix);

}  // namespace kymo
