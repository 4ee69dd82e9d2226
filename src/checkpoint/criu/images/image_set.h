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

// The files of one checkpoint, no matter which program made it, compressed (NAME.zst, NAME.lz4) or
// not. They are in the folder of CRIU's images, in its work folder (statistics and logs), in a
// folder that holds both in the layout of kymod or podman, or in an archive that podman exported
// (tar, also compressed).
//
// An archive is read once, from begin to end, and nothing is unpacked to disk. The set keeps the
// statistics, the logs and the images that we read in memory, and only the sizes of all other
// files. So links and names that lead out of the archive can do no harm. They are left out and
// reported, like a second file of the same name (left_out()).
//
// Threads: any number can read it after open().
class ImageSet {
 public:
  // Refuses a pipe, because it could block.
  // Errors: the system's; invalid_argument if the path is neither a folder nor a tar archive;
  //         not_found if there are no images, statistics or logs; data_loss if the archive is cut
  //         short or damaged; resource_exhausted if it holds more than any checkpoint has.
  static Result<ImageSet> open(const std::string& path);

  // The names of all files, without the suffix of a compressed image.
  [[nodiscard]] std::vector<std::string> names() const;
  // Whether the files are in an archive. There is then no folder in which other files could be beside them.
  [[nodiscard]] bool from_archive() const { return from_archive_; }
  // The folder of the images, or in which they should be. Empty if they are in an archive.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // The number of CRIU's images (*.img), and the sum of their sizes on disk, with podman's archive of /dev/shm.
  [[nodiscard]] std::uint64_t image_files() const { return image_files_; }
  [[nodiscard]] std::uint64_t image_bytes() const { return image_bytes_; }
  // The files that were left out, with the reason, one line each.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  // The size of a file on disk or in the archive; 0 if it is not there.
  [[nodiscard]] std::uint64_t size(const std::string& name) const;
  // Whether an image is stored compressed. size() is then its compressed size.
  [[nodiscard]] bool packed(const std::string& name) const;
  // The path that was opened.
  [[nodiscard]] const std::string& path() const { return path_; }
  // The path of a file on disk, or the name of its member of the archive; empty if it is not there.
  [[nodiscard]] std::string stored(const std::string& name) const;
  // Where a file is, for messages. If it is not there, the name itself.
  [[nodiscard]] std::string where(const std::string& name) const;
  // Reads a whole file and unpacks it. Of an archive, only files that are kept in memory.
  // Errors: not_found; out_of_range if the file is larger than kMaxImage or was not kept.
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name) const;

 private:
  struct File {
    std::string path;              // on disk; in an archive: the member's name
    std::vector<std::byte> bytes;  // the content, if it is kept
    bool kept = false;             // whether it is a member of an archive that is kept in memory
    std::uint64_t size = 0;
  };

  Result<void> open_folder();
  Result<void> open_archive();
  // Adds the files of a folder whose names are `wanted`, except names that the set has already.
  void add_folder(const std::string& folder, bool (*wanted)(std::string_view));
  // Adds the current member of the archive, and adds the memory that it takes to `held`. Returns
  // false if the member cannot be read.
  bool add_member(archive* a, archive_entry* entry, std::size_t& held);
  void count(std::string_view name, std::uint64_t bytes);
  void leave_out(const std::string& name, std::string_view why);
  // Whether there are statistics or a log.
  [[nodiscard]] bool has_work_file() const;

  std::string path_;
  std::string folder_;
  bool from_archive_ = false;
  std::map<std::string, File> files_;
  std::uint64_t image_files_ = 0;
  std::uint64_t image_bytes_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace kymo::criu
