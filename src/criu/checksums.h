#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// The checksums of a checkpoint's images: a file in their folder with a line for each file there
// and in the folders below it, "HASH  NAME", as the tool xxh128sum writes and checks it. XXH3 of
// 128 bits finds damage at the speed of memory; it does not tell what somebody has changed who
// could write the checksum as well.
inline constexpr const char* kChecksumsFile = "checksums.xxh128";

// Reads every file and writes the checksums. Errors: the system's. Blocks for as long as
// the disk takes. Cost: 10 GB/s, and what reading costs; 1 MiB of memory.
Result<void> write_checksums(const std::string& images_dir);

struct Compared {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string>
      faults;  // a line each, as of Verified: missing, changed, added, listed wrongly
};

// Compares every file. Errors: not_found: the folder has no checksums; the system's.
Result<Compared> compare_checksums(const std::string& images_dir);

}  // namespace kymo::criu
