#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "criu/contents.h"
#include "criu/image_set.h"
#include "criu/pstree.h"

namespace kymo::criu {

// The result of verify_images().
struct Verified {
  std::vector<ImageProcess> tree;  // the root first; empty if it cannot be read
  std::uint64_t pages = 0;         // that are in these images according to the pagemaps
  // One line each, at most kMaxFaults and then "and more". Empty if the images belong together and
  // are complete.
  std::vector<std::string> faults;
};

// Checks whether a restore finds what it needs in the images:
//  - an inventory of a known version, and the process tree;
//  - for each process its core and, unless it had ended, its memory map, its pagemap and the core
//    of each thread;
//  - for each pagemap exactly as many pages as it lists, also in the parents that these images refer to;
//  - no pipe or device in place of an image, also in the parents of these images.
// The content of pages is not checked; checksums are for that (checksums.h, contents.h). Pages that are stored
// compressed are only counted if `contents` of the images is given. Its faults are then among those that are found.
//
// Threads: any.
// Cost:    a pass over the small images; milliseconds.
Verified verify_images(const ImageSet& images, const Contents* contents = nullptr);

}  // namespace kymo::criu
