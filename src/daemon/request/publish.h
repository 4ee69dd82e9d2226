#pragma once

#include <memory>
#include <optional>

#include "base/claims.h"
#include "base/disk_wait.h"
#include "daemon/state/checkpoint_dir.h"
#include "kymo/result.h"

namespace kymo::daemon {

// publish_images(), unless `wait` is over before the disk has answered. Then returns nothing, and the images
// are published in the background as soon as the disk answers.
//
// Threads:   any.
// Ownership: `claim` of the directory is held until the publishing has ended, so that nobody takes the
//            images for those of a dump that has failed.
// Errors:    those of publish_images().
std::optional<Result<void>> publish_until(const CheckpointDir& dir,
                                          std::shared_ptr<const Claims<std::string>::Claim> claim,
                                          const DiskWait& wait);

}  // namespace kymo::daemon
