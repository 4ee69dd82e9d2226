#include "daemon/log_path.h"

#include <algorithm>
#include <filesystem>

namespace kymo::daemon {

std::string free_log_path(const std::string& asked) {
  const std::size_t folder_end = asked.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = std::min(asked.find('.', folder_end), asked.size());
  std::string path = asked;
  std::error_code error;  // what cannot be looked at is refused when it is opened
  for (int n = 2; std::filesystem::exists(path, error); ++n) {
    path = asked.substr(0, dot) + "-" + std::to_string(n) + asked.substr(dot);
  }
  return path;
}

}  // namespace kymo::daemon
