#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// The directory of the checkpoint that a user names. If there is a file or folder with this name,
// it is the name itself. Otherwise, if kymod answers, it is the directory of the checkpoint with
// this id, or of the last checkpoint of the job with this name. An unknown name is returned as it
// is.
std::string checkpoint_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
