#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// The file with the checksums of a checkpoint's images. It is in the images' folder and has a line
// "HASH  NAME" for each file in that folder and in the folders below it. The tool xxh128sum writes
// and checks this format. XXH3 with 128 bits finds damage at the speed of memory. It does not
// detect a change by somebody who can also write the checksum.
inline constexpr const char* kChecksumsFile = "checksums.xxh128";

// Reads every file and writes the checksums. Blocks for as long as the disk takes.
// Errors: the system's.
// Cost:   10 GB/s, plus the time to read the files; 1 MiB of memory.
Result<void> write_checksums(const std::string& images_dir);

struct Compared {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  // One line each, as in Verified: a file is missing, changed or added, or its line is damaged.
  std::vector<std::string> faults;
};

// Compares every file with its checksum.
// Errors: not_found if the folder has no checksums; the system's.
Result<Compared> compare_checksums(const std::string& images_dir);

}  // namespace kymo::criu
