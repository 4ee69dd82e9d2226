#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

struct archive;  // libarchive's
struct archive_entry;

namespace kymo::criu {

// The files of one checkpoint, whoever made it, compressed (NAME.zst, NAME.lz4) or not: in the
// folder of CRIU's images, in its work folder (statistics and logs), in one that holds both as
// kymod and podman lay them out, or in an archive that podman exported (tar, also compressed).
//
// An archive is read through once and nothing is unpacked: statistics, logs and the images that we
// read are kept in memory, of all else the sizes alone. So links and names that lead out of it can
// do no harm; they are left out and told, and so is a second file of a name.
//
// Threads: read by any number once open.
class ImageSet {
 public:
  // Errors: the system's; invalid_argument: neither a folder nor a tar archive; not_found: neither
  // images nor statistics nor logs are there; data_loss: the archive is cut short or damaged;
  // resource_exhausted: more than any checkpoint has. Never waits: a pipe is refused.
  static Result<ImageSet> open(const std::string& path);

  // The names of all files, without the suffix of a compressed image, and those of CRIU's images
  // (*.img) with the sum of what they take on disk.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::uint64_t image_files() const { return image_files_; }
  [[nodiscard]] std::uint64_t image_bytes() const { return image_bytes_; }
  // What was left out, a line each.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  // What a file takes on disk, or in the archive; 0 where it is not there.
  [[nodiscard]] std::uint64_t size(const std::string& name) const;
  // Whether an image is kept compressed: its size is then another.
  [[nodiscard]] bool packed(const std::string& name) const;
  // Where a file is, for messages; the name itself where it is not there.
  [[nodiscard]] std::string where(const std::string& name) const;
  // A file whole; of an archive, one of those that were kept. Errors: not_found; out_of_range for
  // one larger than kLargestImage, or not kept.
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name) const;

 private:
  struct File {
    std::string path;              // on disk; of an archive, the member's name
    std::vector<std::byte> bytes;  // of an archive's member that is kept
    bool kept = false;             // `bytes` are all of it
    std::uint64_t size = 0;
  };

  Result<void> open_folder();
  Result<void> open_archive();
  // The files of a folder whose names are `wanted`, where none of that name came before.
  void add_folder(const std::string& folder, bool (*wanted)(std::string_view));
  // The member that was come to; `held` grows by what it takes. False: it cannot be read.
  bool add_member(archive* a, archive_entry* entry, std::size_t& held);
  void count(std::string_view name, std::uint64_t bytes);
  void leave_out(const std::string& name, std::string_view why);
  // Whether there are statistics or a log.
  [[nodiscard]] bool has_work_file() const;

  std::string path_;
  bool from_archive_ = false;
  std::map<std::string, File> files_;
  std::uint64_t image_files_ = 0;
  std::uint64_t image_bytes_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace kymo::criu
