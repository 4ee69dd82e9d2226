#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/images/contents.h"
#include "checkpoint/criu/images/image_list.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/pstree.h"
#include "kymo/result.h"

namespace kymo::criu {

// What is known of images beside themselves.
struct KnownOfImages {
  const Contents* contents = nullptr;  // of the compressed files; null: they were not read
  const ImageList* list = nullptr;     // of their dump; null: there is none
  Sums sums = Sums::small;             // of the list, which are compared
};

// The result of verify_images().
struct Verified {
  std::vector<ImageProcess> tree;  // the root first; empty if it cannot be read
  std::uint64_t pages = 0;         // that are in these images according to the pagemaps
  // One line each, at most kMaxFaults and then "and more". Empty if the images belong together and
  // are complete.
  std::vector<std::string> faults;
  std::optional<Compared>
      compared;  // with the list, if there is one; its faults are among the others
  // What cannot be known without a list, one line each.
  std::vector<std::string> unknown;
};

// Decides whether images are whole. This is the only place that does: `kymo verify`, `kymo check` and each restore ask
// it. If there is a list of the images, the folder is held against it (image_list.h). If not, each image must be there
// that another one names (image_references.h). In both cases a restore must find what it needs:
//  - an inventory of a known version, and the process tree;
//  - for each process its core and, unless it had ended, its memory map, its pagemap and the core
//    of each thread;
//  - for each pagemap exactly as many pages as it lists, also in the parents that these images refer to;
//  - no pipe or device in place of an image, also in the parents of these images.
// The content of pages is not checked, unless the list has their checksums and `known.sums` names them. Pages that are
// stored compressed are only counted if `known.contents` is given. Its faults are then among those that are found. If
// the folder is not that of the list, only the differences are faults: all others follow from them.
//
// Threads: any.
// Errors:  those of compare_images().
// Cost:    a pass over the small images, milliseconds; that of compare_images().
Result<Verified> verify_images(const ImageSet& images, const KnownOfImages& known = {});

}  // namespace kymo::criu
