#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::criu {

// CRIU's notification at which every image is written and every process still stands.
inline constexpr std::string_view kAllWritten = "post-dump";

// Makes the images durable: writes every file of the folder, and of the folders in it, to its disk,
// then the folders themselves and the two above, in which the folder's name stands. After it a
// power failure loses none of them. Blocks for as long as the disk takes. Errors: what could not be
// written, and why; a disk reports a failure once, so that trying again proves nothing.
Result<void> sync_images(const std::string& images_dir);

// The same; deadline_exceeded where it has not ended by then, as on a disk that stalls.
Result<void> sync_in_time(const std::string& images_dir,
                          std::chrono::steady_clock::time_point until);

}  // namespace kymo::criu
