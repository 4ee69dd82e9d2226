#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "kymo/result.h"

namespace kymo::runtime {

// The one thing of podman's that kymod replaces (docs/runtimes.md). While it exists, the folder or file `path`, where podman
// expects a checkpoint, is a link to `target`. An older one at `path` is moved aside and put back later, because podman
// needs it to restore a checkpoint of its own.
class CheckpointLink {
 public:
  CheckpointLink(const std::string& path, const std::string& target)
      : path_(path), aside_(path + kAside) {
    if (std::filesystem::is_symlink(path_, error_)) {  // left by a kymod that was killed
      std::filesystem::remove(path_, error_);
    } else if (std::filesystem::exists(path_, error_)) {
      std::filesystem::rename(path_, aside_, error_);
    }
    std::filesystem::create_symlink(target, path_, error_);
  }
  ~CheckpointLink() { put_back(path_, aside_); }
  CheckpointLink(const CheckpointLink&) = delete;
  CheckpointLink& operator=(const CheckpointLink&) = delete;

  [[nodiscard]] Result<void> made() const {
    return error_ ? Result<void>(system_error("make " + path_, error_.value())) : Result<void>();
  }

  // Puts podman's folder or file back after a kymod was killed, if the link leads to this target.
  static void undo(const std::string& path, const std::string& target) {
    std::error_code error;
    if (std::filesystem::read_symlink(path, error) == target) {
      put_back(path, path + kAside);
    }
  }

 private:
  static constexpr char kAside[] = ".kymo-aside";
  static void put_back(const std::string& path, const std::string& aside) {
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) {
      std::filesystem::remove(path, error);
    }
    if (std::filesystem::exists(aside, error)) {
      std::filesystem::rename(aside, path, error);
    }
  }

  std::string path_;
  std::string aside_;
  std::error_code error_;
};

// Moves a file, which may be missing. Returns false if it is still there, for example because there is no room. Then
// nothing of it is at `to`.
bool move_file(const std::string& from, const std::string& to);

// Reads a file, which may be missing, to its end. Returns false if the disk does not answer, or gives less than 4 MiB a
// second: another program would wait for it.
bool disk_answers_for(const std::string& path);

}  // namespace kymo::runtime
