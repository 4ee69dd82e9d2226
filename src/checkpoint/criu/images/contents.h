#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/criu/images/image_set.h"

namespace kymo::criu {

// What is in the compressed files of a checkpoint. Compression usually adds a checksum to a file, which finds a changed
// byte like those of checksums.h.
struct Contents {
  // Of the compressed images, by name. An image is only here if it could be decompressed.
  std::map<std::string, std::uint64_t> sizes;
  std::uint64_t compared = 0;      // images that agree with the checksum in them
  std::uint64_t without_sums = 0;  // images that have none, so that not every changed byte is found
  // Of a compressed archive: whether all of it agrees with its checksum. false: it has none.
  std::optional<bool> archive_compared;
  std::set<std::string> damaged;    // images that cannot be decompressed, or do not agree
  std::vector<std::string> faults;  // as in Verified (verify.h)
};

// Decompresses every compressed image, and a compressed archive to its end, without keeping anything.
//
// Threads: one.
// Cost:    reads all compressed files; zstd decompresses about a gigabyte a second. Bounded memory.
Contents read_contents(const ImageSet& images);

}  // namespace kymo::criu
