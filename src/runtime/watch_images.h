#pragma once

#include <memory>
#include <string>

#include "kymo/result.h"
#include "probe/directory_bytes.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Tells the observer how the images of a dump grow; ended by finish(). The observer must outlive
// it.
Result<std::unique_ptr<probe::DirectoryBytesWatcher>> watch_images(const std::string& images_dir,
                                                                   const Observer& observer);

}  // namespace kymo::runtime
