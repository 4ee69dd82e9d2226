#include "base/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <string_view>
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

// The value of the option user_id of a FUSE mount, by its line in mountinfo.
std::optional<uid_t> user_in(const std::string& line) {
  constexpr std::string_view kOption = "user_id=";
  const std::size_t type = line.find(" - fuse");
  const std::size_t at = type == std::string::npos ? type : line.find(kOption, type);
  if (at == std::string::npos) return std::nullopt;
  uid_t user = 0;
  const char* const begin = line.data() + at + kOption.size();
  const auto parsed = std::from_chars(begin, line.data() + line.size(), user);
  return parsed.ec == std::errc() ? std::optional(user) : std::nullopt;
}

// The line of mountinfo of the mount with this id. Empty if there is none.
std::string line_of(const std::string& mount_id) {
  const Result<std::string> mounts = read_file("/proc/self/mountinfo");
  if (!mounts || mount_id.empty()) return {};
  std::istringstream lines(*mounts);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(mount_id + " ")) return line;
  }
  return {};
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

std::vector<std::string> mount_points_that_end(std::string_view ending) {
  std::vector<std::string> found;
  const Result<std::string> mounts = read_file("/proc/self/mountinfo");
  std::istringstream lines(mounts ? *mounts : "");
  for (std::string line; std::getline(lines, line);) {
    std::string point = mount_point(line);
    if (point.ends_with(ending)) found.push_back(std::move(point));
  }
  return found;
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

std::string mount_of(int fd) {
  constexpr std::string_view kMount = "\nmnt_id:\t";
  const Result<std::string> text = read_file("/proc/self/fdinfo/" + std::to_string(fd));
  const std::size_t at = text ? text->find(kMount) : std::string::npos;
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kMount.size();
  return text->substr(begin, text->find('\n', begin) - begin);
}

std::optional<uid_t> fuse_user(const std::string& mount_id) {
  return user_in(line_of(mount_id));
}

std::string disk_of(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path folder = path;
  FileDescriptor there;
  for (;; folder = folder.parent_path()) {
    there = FileDescriptor(::open(folder.c_str(), O_PATH | O_CLOEXEC));
    if (there.valid() || folder.empty() || folder == folder.parent_path()) break;
  }
  if (!there.valid()) return {};
  // Behind the hyphen: type, source, options.
  constexpr std::string_view kHyphen = " - ";
  const std::string line = line_of(mount_of(there.get()));
  const std::size_t at = line.find(kHyphen);
  if (at == std::string::npos) return {};
  std::istringstream words(line.substr(at + kHyphen.size()));
  std::string type;
  std::string source;
  words >> type >> source;
  return type + " " + unescaped(source);
}

}  // namespace kymo
