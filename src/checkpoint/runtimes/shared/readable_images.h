#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::runtime {

// CRIU restores a container that has a user namespace with the rights of the root of that namespace, who is
// an ordinary user of this machine and must read the images. kymod's images are readable only by its own
// user. So this object gives others the right to read them, and takes it away again at its end. Meanwhile
// the folder around the images keeps other users away from them: it must give them no right.
// Follows no link. Threads: one for each object.
class ReadableImages {
 public:
  // Changes nothing if the images are of no container with a user namespace, or if others can read them.
  // `tried`: how errors begin.
  // Errors: failed_precondition: others can enter the folder around the images; the system's.
  static Result<ReadableImages> of(const std::string& tried, const std::string& images_dir);

  // Whether of() would give others the right to read these images.
  static bool gives(const std::string& images_dir);
  // Takes away what a process that was killed has given. Images that are gone are no error.
  static Result<void> take_back(const std::string& images_dir);

  ReadableImages() = default;
  ~ReadableImages();
  ReadableImages(ReadableImages&& other) noexcept : folders_(std::exchange(other.folders_, {})) {}
  ReadableImages& operator=(ReadableImages&& other) noexcept {
    std::swap(folders_, other.folders_);
    return *this;
  }

 private:
  struct Folder {
    FileDescriptor open;
    bool changed = false;
    std::vector<std::string> files{};  // those that were changed
  };
  // Changes the files, then the folders in it, and the folder itself at last.
  Result<void> give(FileDescriptor folder);

  std::vector<Folder> folders_;
};

}  // namespace kymo::runtime
