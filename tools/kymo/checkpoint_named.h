#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// The directory of the checkpoint that a user names. A name with a slash, or of a file, is a
// path. Otherwise, if kymod answers, it is the directory of the checkpoint with this id, or of the
// last complete checkpoint of the job with this name: a folder of the same name, which somebody else
// may have made here, never takes their place. A name that kymod does not know is a path.
// Throws CLI::ValidationError if the job has no complete checkpoint, or if the name is empty.
std::string checkpoint_named(const Context& context, const std::string& name);

}  // namespace kymo::cli
