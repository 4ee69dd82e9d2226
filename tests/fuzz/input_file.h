#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kymo::fuzz {

// A file in memory, for readers that want the path of one.
class InputFile {
 public:
  InputFile();
  // Makes `content` all that is in it; a `size` beyond its end is a hole.
  void write(std::string_view content, std::size_t size = 0);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileDescriptor fd_;
  std::string path_;
};

}  // namespace kymo::fuzz
