#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::runtime {

inline constexpr const char* kRestoreLocks = "/run/kymo-restores.lock";

// Locks what a restore uses alone ("directory /a/b", "container runc:web in /run/runc"), so that two requests of
// the kymods of one machine never restore the same at the same time: the one that fails would take the processes and mounts of the other
// for what it has itself left half made. Each name is one byte of one file, at the hash of the name, with a lock of fcntl(2)
// that ends with the descriptor, so also with a kymod that is killed. The file stays, and is empty. A kymod that may not
// write /run locks nothing, and gets an invalid descriptor.
// Threads: any.
// Errors:  failed_precondition: another restore holds the lock of one of the names.
Result<FileDescriptor> lock_for_restore(const std::vector<std::string>& names,
                                        const std::string& file = kRestoreLocks);

enum class ImageUse : std::uint8_t {
  read,    // by a restore: any number of them at a time
  change,  // a deletion, or a look that may discard or rename the images: one at a time, and no restore meanwhile
};

// Locks the images in these directories against what another kymod does with them. `directories`: without symbolic
// links, so that all kymods use the same names. The locks are those of lock_for_restore(), on other bytes.
// Threads: any.
// Errors:  failed_precondition: another use of one of the directories excludes this one.
Result<FileDescriptor> lock_images(const std::set<std::string>& directories, ImageUse use,
                                   const std::string& file = kRestoreLocks);

}  // namespace kymo::runtime
