#pragma once

#include <functional>
#include <optional>

#include "daemon/state/checkpoint_dir.h"
#include "kymo/result.h"

namespace kymo::daemon {

// publish_images(), unless `is_over` becomes true before the disk has answered. Then returns nothing, and
// the images are published in the background as soon as the disk answers.
//
// Threads: any; `is_over` is called on this one.
// Errors:  those of publish_images().
std::optional<Result<void>> publish_until(const CheckpointDir& dir,
                                          const std::function<bool()>& is_over);

}  // namespace kymo::daemon
