#include "checkpoint/runtimes/shared/link_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

namespace kymo::runtime {

std::string link_of_another_user(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    struct stat seen {};
    if (::lstat(part.c_str(), &seen) != 0) return "";
    if (S_ISLNK(seen.st_mode) && seen.st_uid != 0 && seen.st_uid != ::geteuid()) return part;
    if (end == std::string::npos) return "";
  }
}

}  // namespace kymo::runtime
