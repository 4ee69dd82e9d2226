#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// An image of a checkpoint, as its dump has listed it. kymod keeps the list in checkpoint.json.
struct ListedImage {
  std::string name;                      // of the file: "core-7.img.zst", "pre-1/pages-1.img"
  std::optional<std::uint64_t> bytes{};  // not set: the list does not say it
  std::string xxh128{};                  // as the tool xxh128sum prints it; empty: not known
};
using ImageList = std::vector<ListedImage>;

// Which images are read for their checksums. XXH3 with 128 bits finds damage at the speed of memory. It does not detect
// a change by somebody who can also write the list.
enum class Sums : std::uint8_t {
  small,  // all but the memory pages
  all,
};

// Whether a file is an image: NAME.img, also compressed. What else is in the folder, such as logs, statistics and
// descriptors.json, may change.
bool is_image_file(std::string_view file_name);

// Lists the images in a folder and in the folders below it, where those of pre-dumps are. Follows no link.
// Errors: the system's.
// Cost:   reads the images that `sums` names, 10 GB/s plus the time of the disk; 1 MiB of memory.
Result<ImageList> list_images(const std::string& folder, Sums sums);

// The list in checksums.xxh128, which older versions of kymod wrote beside the images, with a line "HASH  NAME" for
// each file. A damaged line is added to `faults`.
// Errors: not_found if there is none; the system's.
Result<ImageList> read_checksums_file(const std::string& folder, std::vector<std::string>& faults);

struct Compared {
  std::uint64_t images = 0;         // in the list
  std::uint64_t files = 0;          // compared with their checksums
  std::uint64_t bytes = 0;          // of these files
  bool pages = false;               // every image of pages was among these files
  std::vector<std::string> faults;  // as in Verified (verify.h)
};

// Holds a folder against the list of its images: each must be there, with its size and, if it is one of `sums` and its
// checksum is known, its content, and there must be no other.
// Errors: the system's.
// Cost:   that of list_images().
Result<Compared> compare_images(const std::string& folder, const ImageList& list, Sums sums);

}  // namespace kymo::criu
