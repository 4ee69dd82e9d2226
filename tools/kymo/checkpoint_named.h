#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// The directory that a user means who names a checkpoint: the name itself where there is such a
// file or folder; else, if kymod answers, the directory of the checkpoint with that id, or of the
// last one of the job with that name. What nobody knows is returned as it is.
std::string checkpoint_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
