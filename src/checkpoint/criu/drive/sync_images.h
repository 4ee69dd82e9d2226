#pragma once

#include <algorithm>
#include <chrono>
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

// The same, but it returns at `until`.
// Errors: also deadline_exceeded if the sync has not ended by then, for example on a stalled disk.
Result<void> sync_in_time(const std::string& images_dir,
                          std::chrono::steady_clock::time_point until);

// The time until then, at least a millisecond. 0: there is no end.
inline std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point until) {
  if (until == std::chrono::steady_clock::time_point::max()) return std::chrono::milliseconds(0);
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      until - std::chrono::steady_clock::now()));
}

}  // namespace kymo::criu
