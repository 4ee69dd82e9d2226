#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verbs.h"

namespace kymo::cli {

// Does what a verb does with checkpoints of unknown origin in a process without rights
// (confine/run.h), which can read these files and folders and those beside them, and print. The
// verb's exit code is that which `look` leaves in the context.
void look_confined(Context& context, const std::vector<std::string>& paths,
                   const std::function<void()>& look);

}  // namespace kymo::cli
