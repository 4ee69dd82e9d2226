#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace kymo {

// `path` from the root, so that it stays the same when the process changes its working directory.
// Returns `path` if the working directory was removed.
inline std::string absolute_path(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

}  // namespace kymo
