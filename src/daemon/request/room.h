#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/database/store.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What is known of the size of a dump's images before the dump.
struct PlannedImages {
  std::uint64_t bytes = 0;  // before compression (preflight::Report::bytes_to_write())
  // Images may be much smaller if they are compressed.
  bool compressed = false;
  // The part of these bytes that they took in earlier dumps that were compressed like this, or with zstd if this one is not
  // compressed; 0: not known.
  double least_share = 0;
  bool can_compress = true;  // false: a runtime writes the images, and kymod cannot compress them
  std::string
      uncompressed_by{};  // the option with which images cannot be compressed; empty: none was given
};

// What an earlier dump wrote in all, before compression.
std::uint64_t written_by(const store::Run& run);

// The smallest part of what these dumps wrote that their images took, of those that were compressed like this
// ("zstd"); 0: there is none.
double least_share_of(const std::vector<store::Run>& earlier, std::string_view compression);

// Those of these dumps that can say how long another one would take: onto the same disk (Run::disk), which wrote at
// least half and at most twice as much.
std::vector<store::Run> alike(std::vector<store::Run> earlier, const std::string& disk,
                              std::uint64_t written_bytes);

// The median of how long the processes of these dumps stood still, in nanoseconds, of those that were compressed like this
// ("zstd"; empty: of those that were not compressed); 0: there is none.
std::uint64_t standstill_of(const std::vector<store::Run>& earlier, std::string_view compression);

// What is planned, if the images are compressed like this ("zstd"; empty: they are not). The history of the owner tells
// how much compressed images took.
PlannedImages plan_images(store::Store& store, std::string_view owner, std::uint64_t bytes,
                          std::string_view compression);

// Why images have no room.
struct NoRoom {
  std::string figures;  // "about 2 GiB are needed in /c, and its disk has 1 GiB free"
  std::string remedy;   // "free space, or ..."
};

// Whether images clearly have no room. CRIU would find that only after it has stopped the process. The
// estimate of what they take is a low one, because such a dump must not be refused if it could succeed.
// - Without compression, it is nine tenths of the bytes: the process may give memory back meanwhile.
// - Compressed, it is half of the smallest part in earlier dumps, or 0.003 % of the bytes if there were
//   none, which is what zstd makes of zeros. The same holds on a file system that may compress files itself, or does not say.
// - On a tmpfs, the machine's free memory and swap are a bound, too.
// A disk with fewer than ten free inodes has no room, either.
// `directory`: of the checkpoint, which need not exist. A quota of a user is not seen.
// Threads: any; blocks for at most kDiskPatience. If the disk does not answer by then, they have room.
std::optional<NoRoom> find_no_room(const std::string& directory, const PlannedImages& planned);
// The same as an error.
// Errors: resource_exhausted: the figures, and what to do.
Result<void> check_room(const std::string& directory, const PlannedImages& planned);

}  // namespace kymo::daemon
