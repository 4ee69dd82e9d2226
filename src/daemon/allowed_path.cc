#include "daemon/allowed_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool lies_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  const std::string real = without_last_slash(fs::weakly_canonical(folder, error));
  if (error) return false;
  return path == real || path.starts_with(real == "/" ? real : real + "/");
}

// weakly_canonical() leaves a link as it is if its target does not exist. Somebody could make the
// target later, and the link would lead there.
bool holds_a_link(const fs::path& path) {
  fs::path part;
  return std::any_of(path.begin(), path.end(), [&](const fs::path& name) {
    std::error_code error;
    part /= name;
    return fs::is_symlink(part, error);
  });
}

}  // namespace

Result<std::string> allowed_path(const Config& config, const std::string& tried,
                                 const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{Code::invalid_argument,
                 tried + " " + path + ": the directory must be given as an absolute path"};
  }
  if (path.find('\0') != std::string::npos) {
    return Error{Code::invalid_argument,
                 tried + " " + path.substr(0, path.find('\0')) + ": the path holds a NUL"};
  }
  if (config.allowed_directories.empty()) {
    return without_last_slash(fs::path(path).lexically_normal());
  }
  std::error_code error;
  const std::string real = without_last_slash(fs::weakly_canonical(path, error));
  if (error) return system_error(tried + " " + path, error.value());
  const bool inside =
      lies_in(real, config.state_dir) ||
      std::any_of(config.allowed_directories.begin(), config.allowed_directories.end(),
                  [&](const std::string& folder) { return lies_in(real, folder); });
  if (inside && !holds_a_link(real)) return real;
  return Error{Code::permission_denied,
               tried + " " + path + (real == path ? "" : ", which is " + real) +
                   ": it lies in none of the directories that kymod was started with "
                   "(--allow-directory)"};
}

std::string as_file_name(const std::string& name) {
  std::string out = name;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return out.empty() || out == "." || out == ".." ? "_" : out;
}

}  // namespace kymo::daemon
