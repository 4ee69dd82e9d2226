#include "daemon/state/directory_claim.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/patience.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// Without `.`, `..` and slashes at the end.
std::string plainly_written(const std::string& path) {
  std::string plain = fs::path(path).lexically_normal();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

// The path without links, as far as it exists.
std::string path_without_links(const std::string& path) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(path, error);
  return plainly_written(error ? path : real);
}

std::set<std::string> paths_without_links(const std::set<std::string>& paths) {
  std::set<std::string> real;
  for (const std::string& path : paths) real.insert(path_without_links(path));
  return real;
}

std::set<std::string> keys_of(const std::set<std::string>& paths, DirectoryClaim::Use use) {
  const std::string before =
      use == DirectoryClaim::Use::deletion ? "deletion of directory:" : "directory:";
  std::set<std::string> keys;
  for (const std::string& path : paths) keys.insert(before + path);
  return keys;
}

}  // namespace

DirectoryClaim::DirectoryClaim(Claims<std::string>& claims, const std::set<std::string>& paths,
                               SilentDisk silent, Use use) {
  std::set<std::string> written;
  for (const std::string& path : paths) written.insert(plainly_written(path));
  written_ = claims.claim_all(keys_of(written, use));
  if (!written_) return;
  std::set<std::string> real;
  if (silent == SilentDisk::wait) {
    real = paths_without_links(written);
  } else {
    real = within(kDiskPatience, [written] {
             return paths_without_links(written);
           }).value_or(std::set<std::string>());
  }
  for (const std::string& path : written) real.erase(path);
  if (real.empty()) return;
  real_ = claims.claim_all(keys_of(real, use));
  if (!real_) written_ = {};
}

std::string real_directory(const std::string& path) {
  return within(kDiskPatience, [path] { return path_without_links(path); })
      .value_or(plainly_written(path));
}

std::set<std::string> real_directories(const std::set<std::string>& paths) {
  return within(kDiskPatience, [paths] { return paths_without_links(paths); }).value_or(paths);
}

}  // namespace kymo::daemon
