#include "base/mappings.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace kymo {

bool any_shared_mapping(pid_t pid, const std::function<bool(const SharedMapping&)>& each,
                        const std::string& root) {
  std::ifstream maps(root + "/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    // RANGE rw-s OFFSET MAJOR:MINOR INODE   PATH; most are private and not worth taking apart.
    const std::size_t mode_at = std::min(line.find(' '), line.size()) + 1;
    if (line.size() < mode_at + 4 || line[mode_at + 3] != 's') {
      continue;
    }
    std::istringstream words(line);
    std::string range;
    std::string mode;
    std::string offset;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    char colon = 0;
    SharedMapping mapping;
    words >> range >> mode >> offset >> std::hex >> major_number >> colon >> minor_number >>
        std::dec >> mapping.inode >> std::ws;
    if (mapping.inode == 0) {
      continue;
    }
    std::getline(words, mapping.path);
    mapping.device = makedev(major_number, minor_number);
    if (each(mapping)) {
      return true;
    }
  }
  return false;
}

bool process_maps(pid_t pid, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return false;
  }
  std::error_code ignored;
  const std::string canonical = std::filesystem::canonical(path, ignored).string();
  return any_shared_mapping(pid, [&](const SharedMapping& mapping) {
    return mapping.inode == status.st_ino &&
           (mapping.device == status.st_dev || canonical.ends_with(mapping.path));
  });
}

}  // namespace kymo
