#pragma once

#include <memory>
#include <string>

#include "base/proc/directory_bytes.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Starts to report the size of the images of a dump to the observer, until finish() of the returned
// watcher is called. The observer must outlive the watcher. `held`, which may be null, takes note of what happens there.
Result<std::unique_ptr<probe::DirectoryBytesWatcher>> watch_images(
    const std::string& images_dir, const Observer& observer,
    std::shared_ptr<criu::HeldImages> held);

}  // namespace kymo::runtime
