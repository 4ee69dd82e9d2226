#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verbs.h"

namespace kymo::cli {

// Runs `look`, the part of a verb that reads checkpoints of unknown origin, in a process without
// rights (confine/run.h). It can only print, and read these files and folders and those beside
// them. `look` sets the verb's exit code in the context.
void look_confined(Context& context, const std::vector<std::string>& paths,
                   const std::function<void()>& look);

}  // namespace kymo::cli
