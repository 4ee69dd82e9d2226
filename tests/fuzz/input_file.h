#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kymo::fuzz {

// A file in memory, for readers that need a path.
class InputFile {
 public:
  InputFile();
  // Replaces the content of the file. If `size` is larger than `content`, the rest is a hole.
  void write(std::string_view content, std::size_t size = 0);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileDescriptor fd_;
  std::string path_;
};

}  // namespace kymo::fuzz
