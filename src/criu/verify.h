#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "criu/image_set.h"
#include "criu/pstree.h"

namespace kymo::criu {

// What a look at a checkpoint's images finds.
struct Verified {
  std::vector<ImageProcess> tree;  // the root first; empty where it cannot be read
  std::uint64_t pages = 0;         // that the pagemaps say are in these images
  // A line each, kMostFaults and "and more" at most; empty: the images belong together, and are
  // whole.
  std::vector<std::string> faults;
};

// Whether the images are what a restore needs: an inventory of a known version, the process tree,
// of each process its core and, unless it had ended, its memory map and pagemap, of each thread its
// core, and of each pagemap exactly as many pages as it lists. Pages that are kept compressed are
// not counted, and no page's content is looked at: that is what checksums are for.
//
// Threads: any. Cost: a pass over the small images; milliseconds.
Verified verify_images(const ImageSet& images);

}  // namespace kymo::criu
