#pragma once

#include <string>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::criu {

// A temporary folder for the files that a program must write somewhere.
//
// Threads:   one at a time.
// Ownership: owns the folder and everything in it; the destructor removes it.
class ScratchFolder {
 public:
  // Makes PURPOSE-XXXXXX in the system's folder for temporary files. First it removes the folders
  // of this purpose that killed processes left behind: a folder is locked as long as its process,
  // or a child that inherited the lock, lives.
  // Errors: the system's; unavailable if other processes removed each folder that it made.
  static Result<ScratchFolder> create(const std::string& purpose);
  ScratchFolder(ScratchFolder&&) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  FileDescriptor fd_;  // not valid if this was moved from
};

}  // namespace kymo::criu
