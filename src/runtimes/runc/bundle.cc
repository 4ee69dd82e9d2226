#include "runtimes/runc/bundle.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_text.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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
  const fs::path folder = fs::path(bundle) / root["path"].get<std::string>() / "tmp";
  std::error_code error;
  if (fs::is_directory(folder, error)) {
    return BundleRoot{true, ""};
  }
  constexpr mode_t kAsUsual = 01777;
  if (::mkdir(folder.c_str(), kAsUsual) != 0 || ::chmod(folder.c_str(), kAsUsual) != 0) {
    return system_error(tried + ": its root is read-only and has no folder tmp, which CRIU needs " +
                            "there for a restore; make " + folder.string(),
                        errno);
  }
  return BundleRoot{true, "made the empty folder " + folder.string() +
                              ": CRIU needs it to restore a container whose root is read-only"};
}

}  // namespace kymo::runtime
