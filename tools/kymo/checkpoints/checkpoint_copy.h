#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// The directory itself, if this user may read it. If not, and if kymod knows it as a checkpoint: the folder of
// a copy without images (the call ReadCheckpoint), which is removed when kymo ends. Says on stderr that it is a copy.
// `directory` may also be a recording in a checkpoint; then the recording is returned, itself or of the copy.
// Ends the threads of gRPC, so a fork may follow.
std::string readable_checkpoint(const Context& context, const std::string& directory);

// `path` with `directory` in place of the beginning `copy`.
std::string as_in(const std::string& directory, const std::string& copy, const std::string& path);

}  // namespace kymo::cli
