#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::criu {

// A folder for what a program insists on writing somewhere, gone with this. Those that killed
// processes left behind are removed by the next one that is made: a folder is locked as long as
// its process lives, or a child that has inherited it.
//
// Threads: one at a time. Ownership: of the folder and all that is in it.
class ScratchFolder {
 public:
  // PURPOSE-XXXXXX in the system's folder for temporary files. Errors: of the system.
  static Result<ScratchFolder> create(const std::string& purpose);
  ScratchFolder(ScratchFolder&&) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  ScratchFolder(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  FileDescriptor fd_;  // none: moved from
};

}  // namespace kymo::criu
