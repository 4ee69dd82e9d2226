#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/disk_wait.h"
#include "daemon/state/directory_claim.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Does `work` with the images of a finished dump, such as publish_images(), unless `wait` is over before the disk has
// answered. Then returns nothing, and the work goes on in the background as soon as the disk answers.
//
// Threads:   any. `work` runs on a thread of its own, and must own what it uses.
// Ownership: `claim` of the directory is held until the work has ended, so that nobody takes the
//            images for those of a dump that has failed.
// Errors:    those of `work`.
std::optional<Result<void>> work_until(std::function<Result<void>()> work,
                                       std::shared_ptr<const DirectoryClaim> claim,
                                       const DiskWait& wait);

}  // namespace kymo::daemon
