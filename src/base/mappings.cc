#include "base/mappings.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace kymo {
namespace {

// Parses "BEGIN-END MODE OFFSET DEVICE INODE   NAME". Returns nothing if the line does not begin
// with two addresses.
std::optional<Mapping> mapping_in(std::string_view line) {
  const char* const end = line.data() + line.size();
  Mapping mapping;
  const auto first = std::from_chars(line.data(), end, mapping.begin, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, mapping.end, 16);
  if (second.ec != std::errc()) return std::nullopt;
  std::istringstream rest(std::string(second.ptr, end));
  std::string mode;
  std::string word;
  rest >> mode >> word >> word >> word >> std::ws;
  std::getline(rest, mapping.name);
  mapping.executable = mode.find('x') != std::string::npos;
  return mapping;
}

}  // namespace

Result<std::vector<Mapping>> mappings_of(pid_t pid, const std::string& root) {
  const Result<std::string> maps = read_file(root + "/" + std::to_string(pid) + "/maps");
  if (!maps) return maps.error();
  std::vector<Mapping> found;
  for (std::string_view rest = *maps; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (auto mapping = mapping_in(line)) found.push_back(*std::move(mapping));
  }
  return found;
}

bool any_shared_mapping(pid_t pid, const std::function<bool(const SharedMapping&)>& each,
                        const std::string& root) {
  std::ifstream maps(root + "/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    // RANGE rw-s OFFSET MAJOR:MINOR INODE   PATH; skip private mappings, which most lines are.
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
