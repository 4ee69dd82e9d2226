#include "checkpoint/runtimes/runc/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/file.h"
#include "base/json_text.h"
#include "checkpoint/preflight/oci_spec.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using preflight::mounts_of;
using preflight::OciMount;

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

// Returns the path of the root in a config.json that makes it read-only; otherwise an empty string.
std::string read_only_root(const std::string& text) {
  const json config = parse_json(text);
  const json root = config.is_object() ? config.value("root", json()) : json();
  if (!root.is_object() || !root.contains("path") || !root["path"].is_string() ||
      root.value("readonly", json()) != json(true)) {
    return {};
  }
  return root["path"].get<std::string>();
}

// Says why a folder cannot be made in the root for a restore: `cause` is the errno.
Error refused_root(const std::string& tried, const std::string& bundle, const std::string& path,
                   int cause) {
  const fs::path root = fs::path(bundle) / path;
  if (cause == ELOOP) {
    return Error{Code::permission_denied, tried + ": its root " + root.string() +
                                              " is a link or lies behind one, which runc refuses: "
                                              "name the folder itself in config.json"};
  }
  return system_error(tried + ": its root is read-only and has no folder tmp, which CRIU needs " +
                          "there for a restore; make " + (root / kTmp).string(),
                      cause);
}

}  // namespace

criu::PlaceOfGhost places_in_bundle(const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  std::vector<OciMount> mounts = mounts_of(bundle, text ? *text : "");
  return [mounts = std::move(mounts)](const std::string& path) -> std::optional<criu::GhostFile> {
    const OciMount* on = nullptr;
    for (const OciMount& mount : mounts) {  // a later mount covers an earlier one
      if (path.starts_with(mount.destination)) on = &mount;
    }
    if (on == nullptr || on->source.empty()) return std::nullopt;
    return criu::GhostFile{on->source, path.substr(on->destination.size())};
  };
}

Result<void> check_bundle(const std::string& tried, const std::string& bundle) {
  std::error_code error;
  if (!bundle.starts_with('/')) {
    return Error{Code::invalid_argument,
                 tried + ": the bundle must be given as an absolute path (--bundle DIR)"};
  }
  if (!fs::exists(bundle + "/config.json", error)) {
    return Error{Code::not_found,
                 tried + ": " + bundle +
                     " is no bundle, because it has no config.json: name a folder that has one"};
  }
  return {};
}

Result<void> check_restorable(const std::string& tried, const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  if (!text) return {};
  if (Result<void> ok = preflight::refuse_terminal(tried, *text); !ok) return ok;
  const std::string path = read_only_root(*text);
  if (path.empty()) return {};
  const Result<FileDescriptor> root = open_root(bundle, path);
  if (!root) return refused_root(tried, bundle, path, root.error().errno_value);
  struct stat there {};
  if (::fstatat(root->get(), kTmp, &there, 0) == 0 && S_ISDIR(there.st_mode)) return {};
  if (::faccessat(root->get(), ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  return refused_root(tried, bundle, path, errno);
}

Result<BundleRoot> prepare_root(const std::string& tried, const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  const std::string path = text ? read_only_root(*text) : "";
  if (path.empty()) return BundleRoot{};  // if config.json is bad, runc reports that
  const Result<FileDescriptor> opened = open_root(bundle, path);
  struct stat there {};
  if (opened && ::fstatat(opened->get(), kTmp, &there, 0) == 0 && S_ISDIR(there.st_mode)) {
    return BundleRoot{true, ""};
  }
  if (const int error = opened ? make_tmp(opened->get()) : opened.error().errno_value; error != 0) {
    return refused_root(tried, bundle, path, error);
  }
  return BundleRoot{true, "made the empty folder " + (fs::path(bundle) / path / kTmp).string() +
                              ": CRIU needs it to restore a container whose root is read-only"};
}

}  // namespace kymo::runtime
