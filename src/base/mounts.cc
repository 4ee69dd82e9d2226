#include "base/mounts.h"

#include <sys/mount.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/file.h"

namespace kymo {
namespace {

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// Returns the fifth word of a line of mountinfo.
std::string mount_point(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  for (int i = 0; i < 5; ++i) words >> word;
  return unescaped(word);
}

}  // namespace

std::string unescaped(const std::string& word) {
  std::string path;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 3 < word.size() &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    word.begin() + static_cast<std::ptrdiff_t>(i) + 4, is_octal)) {
      path += static_cast<char>(std::stoi(word.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      path += word[i];
    }
  }
  return path;
}

Result<void> detach_mounts(std::string_view prefix) {
  const Result<std::string> mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  std::vector<std::string> found;
  std::istringstream lines(*mounts);
  for (std::string line; std::getline(lines, line);) {
    if (std::string path = mount_point(line); path.starts_with(prefix)) {
      found.push_back(std::move(path));
    }
  }
  std::for_each(found.rbegin(), found.rend(), [](const std::string& path) {
    ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  });
  return {};
}

}  // namespace kymo
