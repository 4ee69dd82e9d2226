#include "runtimes/runc/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/beneath.h"
#include "base/file.h"
#include "base/json_text.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kTmp[] = "tmp";

// Opens the root of the container. As in runc, the path of the bundle may contain links, and the
// path of the root may not. Somebody else may have filled the bundle, and a link could lead to any
// folder of the machine.
Result<FileDescriptor> open_root(const std::string& bundle, const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(bundle, error);
  if (error) return system_error("cannot open " + bundle, error.value());
  const fs::path root = (real / path).lexically_normal();  // the path alone if it is absolute
  return open_beneath("/", root.relative_path() / ".", O_RDONLY | O_DIRECTORY);
}

// Makes the folder. Follows no link. Returns 0 or errno.
int make_tmp(int root) {
  constexpr mode_t kAsUsual = 01777;
  if (::mkdirat(root, kTmp, kAsUsual) != 0) return errno;
  const FileDescriptor made(::openat(root, kTmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made.valid() && ::fchmod(made.get(), kAsUsual) == 0 ? 0 : errno;
}

}  // namespace

Result<void> check_bundle(const std::string& tried, const std::string& bundle) {
  std::error_code error;
  if (!bundle.starts_with('/')) {
    return Error{Code::invalid_argument,
                 tried + ": the bundle must be given as an absolute path (--bundle DIR)"};
  }
  if (!fs::exists(bundle + "/config.json", error)) {
    return Error{Code::not_found,
                 tried + ": " + bundle + " is no bundle, it has no config.json: name another"};
  }
  return {};
}

Result<BundleRoot> prepare_root(const std::string& tried, const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  const json config = parse_json(text ? *text : "");
  const json root = config.is_object() ? config.value("root", json()) : json();
  if (!root.is_object() || !root.contains("path") || !root["path"].is_string() ||
      root.value("readonly", json()) != json(true)) {
    return BundleRoot{};  // not read-only; if config.json is bad, runc reports that
  }
  const auto path = root["path"].get<std::string>();
  const Result<FileDescriptor> opened = open_root(bundle, path);
  if (!opened && opened.error().errno_value == ELOOP) {
    return Error{Code::permission_denied,
                 tried + ": its root " + (fs::path(bundle) / path).string() +
                     " is a link or lies behind one, which runc refuses: name the folder itself in "
                     "config.json"};
  }
  const std::string folder = (fs::path(bundle) / path / kTmp).string();
  struct stat there {};
  if (opened && ::fstatat(opened->get(), kTmp, &there, 0) == 0 && S_ISDIR(there.st_mode)) {
    return BundleRoot{true, ""};
  }
  if (const int error = opened ? make_tmp(opened->get()) : opened.error().errno_value; error != 0) {
    return system_error(tried + ": its root is read-only and has no folder tmp, which CRIU needs " +
                            "there for a restore; make " + folder,
                        error);
  }
  return BundleRoot{true, "made the empty folder " + folder +
                              ": CRIU needs it to restore a container whose root is read-only"};
}

}  // namespace kymo::runtime
