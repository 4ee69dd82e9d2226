#pragma once

#include <cstdint>
#include <string>

#include "kymo/result.h"

namespace kymo {

// Follows the growing file of a job's output: each read continues where the last one ended.
class FileFollower {
 public:
  explicit FileFollower(std::string path, std::uint64_t at = 0) : path_(std::move(path)), at_(at) {}

  // Begins with the last `lines` lines instead of the first one.
  Result<void> begin_with(std::uint64_t lines);
  // The new bytes, at most 1 MiB. Empty if there are none, or if the file does not exist any more.
  //
  // Errors: those of reading the file.
  Result<std::string> next();
  // The offset of the next read.
  [[nodiscard]] std::uint64_t at() const { return at_; }

 private:
  // Returns whether it moved `at_` forward, over a part of the file that was discarded.
  bool skip_removed_part(int file);

  std::string path_;
  std::uint64_t at_ = 0;
};

}  // namespace kymo
