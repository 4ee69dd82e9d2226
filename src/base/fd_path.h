#pragma once

#include <unistd.h>

#include <string>

#include "base/file.h"

namespace kymo {

// A path by which other programs reach what this process has open, wherever it is, as long as it is open here.
inline std::string path_through(const FileDescriptor& fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd.get());
}

}  // namespace kymo
