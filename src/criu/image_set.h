#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// The files of one checkpoint, whoever made it: in the folder of CRIU's images, in its work folder
// (statistics and logs), in one that holds both as kymod and podman lay them out, or in an archive
// that podman exported (tar, also compressed).
//
// An archive is read through once and nothing is unpacked: small images are kept in memory, of
// memory pages the sizes alone. So links and names with `..` in it can do no harm; they are left
// out and told.
//
// Threads: read by any number once open.
class ImageSet {
 public:
  // Errors: the system's; not_found: neither images nor statistics are there; data_loss: the
  // archive is cut short or damaged; resource_exhausted: more than any checkpoint has.
  static Result<ImageSet> open(const std::string& path);

  // What was opened, and where the images and the statistics were found (an archive: itself).
  [[nodiscard]] const std::string& path() const { return path_; }
  // The names of all files, and those of CRIU's images (*.img) with their sum.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::uint64_t image_files() const { return image_files_; }
  [[nodiscard]] std::uint64_t image_bytes() const { return image_bytes_; }
  // What was left out of an archive, a line each.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  // Where a file is, for messages; the name itself where it is not there.
  [[nodiscard]] std::string where(const std::string& name) const;
  // A file whole. Errors: not_found; out_of_range for one larger than kLargestImage.
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name) const;

 private:
  struct File {
    std::string path;              // on disk; of an archive, the member's name
    std::vector<std::byte> bytes;  // of an archive's member that is kept
    bool kept = false;             // `bytes` are all of it
  };

  Result<void> open_folder();
  Result<void> open_archive();
  void add_folder(const std::string& folder);
  void count(std::string_view name, std::uint64_t bytes);

  std::string path_;
  std::map<std::string, File> files_;
  std::uint64_t image_files_ = 0;
  std::uint64_t image_bytes_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace kymo::criu
