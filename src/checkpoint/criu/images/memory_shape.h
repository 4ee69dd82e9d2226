#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/criu/images/image_set.h"

namespace kymo::criu {

// Of what pieces the memory of a checkpoint consists, and how much else it has.
struct MemoryShape {
  std::uint64_t processes = 0;  // with memory
  std::uint64_t mappings = 0;   // of all processes
  std::uint64_t runs = 0;       // of pages that follow each other and are in the images
  std::uint64_t pages = 0;      // in these runs
  std::uint64_t files =
      0;  // open or mapped, with sockets; 0: not known, as in images of old versions
  std::uint64_t sockets = 0;  // of these files
  std::uint64_t threads = 0;  // of all processes, also the first of each; 0: not known
  std::uint64_t shared = 0;   // pieces of shared memory without a file, each with images of its own
};

// Nothing if an image cannot be read, or if there are none.
// Cost: a pass over the pagemaps, the memory maps and the list of files, as long as these have at most 64 MiB.
//       Nothing if they have more.
std::optional<MemoryShape> memory_shape(const ImageSet& images);

}  // namespace kymo::criu
