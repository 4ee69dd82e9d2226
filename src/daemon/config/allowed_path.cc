#include "daemon/config/allowed_path.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/own_folder.h"
#include "base/patience.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

constexpr char kParent[] = "parent";  // CRIU's name for it
constexpr int kMaxParents = 64;

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The path without links, as far as it exists.
std::string path_through_links(const std::string& path) {
  std::error_code error;
  const std::string real = without_last_slash(fs::weakly_canonical(path, error));
  return error ? path : real;
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

// Checks the links in one folder of images, except `parent`.
Result<void> check_links(const Config& config, const std::string& tried,
                         const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (!file->is_symlink(gone) || file->path().filename() == kParent) continue;
    if (auto allowed = allowed_path(config, tried + " with", file->path()); !allowed) {
      return allowed.error();
    }
  }
  if (error) return system_error(tried + ": read " + folder, error.value());
  return {};
}

}  // namespace

Result<void> allowed_images(const Config& config, const std::string& tried,
                            const std::string& images) {
  if (config.allowed_directories.empty()) return {};
  std::string folder = images;
  for (int n = 0; n <= kMaxParents; ++n) {
    if (auto links = check_links(config, tried, folder); !links) return links;
    const fs::path parent = fs::path(folder) / kParent;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(parent, error))) return {};
    Result<std::string> allowed = allowed_path(config, tried + " with its parent", parent);
    if (!allowed) return allowed.error();
    if (!fs::is_directory(*allowed, error)) return {};  // CRIU says what is wrong with it
    folder = std::move(allowed).value();
  }
  return Error{Code::failed_precondition,
               tried + ": it has more than " + std::to_string(kMaxParents) +
                   " parent images, or the links to its parent images form a loop"};
}

Result<std::string> allowed_path(const Config& config, const std::string& tried,
                                 const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{Code::invalid_argument,
                 tried + " " + path + ": the directory must be given as an absolute path"};
  }
  if (path.find('\0') != std::string::npos) {
    return Error{Code::invalid_argument,
                 tried + " " + path.substr(0, path.find('\0')) + ": the path has a NUL byte in it"};
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
                   ": it is not in a directory that requests may use (--allow-directory of kymod)"};
}

Result<void> refuse_own_files(const Config& config, const std::string& tried,
                              const std::string& path) {
  const std::string real = path_through_links(path);
  if (!lies_in(real, config.state_dir)) return {};
  const std::string state = path_through_links(config.state_dir);
  for (const char* free : {"/checkpoints/", "/snapshots/"}) {
    if (real.starts_with(state + free)) return {};
  }
  return Error{Code::invalid_argument,
               tried + " " + path +
                   ": kymod keeps files of its own there; choose a directory outside of its state "
                   "directory"};
}

Result<void> own_place(const std::string& tried, const std::string& file) {
  const auto own = within(kDiskPatience, [file] { return check_place_of(file); });
  if (!own) return Error{Code::unavailable, tried + " " + file + ": its disk does not answer"};
  if (*own) return {};
  const Error& error = own->error();
  const bool others = error.errno_value == 0 && error.code == Code::permission_denied;
  std::string hint;
  if (others) hint = ": choose a folder that only root can change";
  if (error.errno_value == ENOENT) hint = ": create its folder first";
  return Error{error.code, tried + " " + file + ": " + error.message + hint, error.errno_value};
}

std::string as_file_name(const std::string& name) {
  std::string out = name;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c <= ' ' || c > '~' || c == '/'; }, '_');
  return out.empty() || out == "." || out == ".." ? "_" : out;
}

}  // namespace kymo::daemon
