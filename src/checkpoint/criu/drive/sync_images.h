#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::criu {

// The notification of CRIU after it has written all images and before it lets the processes go.
inline constexpr std::string_view kAllWritten = "post-dump";

// Makes the images durable, so that a power failure does not lose them. It writes to the disk every
// file and folder in `images_dir`, the folder itself, and the two folders above it, because they
// have the names of the folders below. Blocks for as long as the disk takes.
// Errors: what could not be written, and why. A disk reports a failure only once, so a second call
//         that succeeds proves nothing.
Result<void> sync_images(const std::string& images_dir);

}  // namespace kymo::criu
