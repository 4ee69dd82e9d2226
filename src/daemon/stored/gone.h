#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/database/store.h"

namespace kymo::daemon {

// Why the images of complete checkpoints are no longer in their directories, by id: somebody has moved or removed the
// directory, its disk is not mounted, or a later checkpoint is there. What is not known is not listed.
// Threads: any, one after the other. Waits at most kDiskPatience for the disks. As long as one look waits for a disk that
//          does not answer, another one answers without the disks.
std::map<std::string, std::string> find_gone(const std::vector<store::Checkpoint>& checkpoints);

}  // namespace kymo::daemon
