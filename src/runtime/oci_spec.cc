#include "runtime/oci_spec.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/json_text.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A text of a JSON object; empty if it is missing or no text.
std::string text_in(const json& object, const char* key) {
  const json value = object.is_object() ? object.value(key, json()) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

// What an operator does about a link.
std::string remedy_of(const std::string& link) {
  std::error_code error;
  const fs::path real = fs::canonical(link, error);
  if (error) return "put the folder or file itself there";
  const std::string in_place =
      fs::is_directory(real, error)
          ? "put a folder there and mount --bind " + real.string() + " on it"
          : "cp --remove-destination " + real.string() + " " + link;
  return in_place + ", or start the container with what the link leads to";
}

}  // namespace

Result<void> refuse_terminal(const std::string& tried, std::string_view spec) {
  const nlohmann::json config = parse_json(spec);
  if (!config.is_object()) return {};
  const auto process = config.find("process");
  if (process == config.end() || !process->is_object()) return {};
  if (process->value("terminal", nlohmann::json()) != nlohmann::json(true)) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": it has a terminal (\"terminal\": true in its config.json), whose other end "
                   "kymod cannot take in a restore: start it without a terminal"};
}

std::vector<OciMount> mounts_of(const std::string& bundle, std::string_view spec) {
  const json config = parse_json(spec);
  std::vector<OciMount> mounts;
  if (!config.is_object()) return mounts;
  const std::string root = text_in(config.value("root", json()), "path");
  if (!root.empty()) mounts.push_back({"/", (fs::path(bundle) / root).lexically_normal()});
  const json listed = config.value("mounts", json::array());
  for (const json& mount : listed) {
    const std::string to = text_in(mount, "destination");
    if (!to.starts_with('/')) continue;
    const json options = mount.value("options", json::array());
    const auto has = [&](const char* option) {
      return std::find(options.begin(), options.end(), json(option)) != options.end();
    };
    const bool bound = text_in(mount, "type") == "bind" || has("bind") || has("rbind");
    const std::string from = bound ? text_in(mount, "source") : "";
    mounts.push_back({(fs::path(to) / "").lexically_normal(),
                      from.empty() ? "" : (fs::path(bundle) / from).lexically_normal().string()});
  }
  return mounts;
}

Result<void> refuse_linked_sources(const std::string& tried, const std::string& bundle,
                                   std::string_view spec) {
  for (const OciMount& mount : mounts_of(bundle, spec)) {
    struct stat there {};
    if (mount.destination == "/" || mount.source.empty() ||
        ::lstat(mount.source.c_str(), &there) != 0 || !S_ISLNK(there.st_mode)) {
      continue;
    }
    return Error{Code::failed_precondition,
                 tried + ": the source of its mount " +
                     mount.destination.substr(0, mount.destination.size() - 1) + ", " +
                     mount.source +
                     ", is a symbolic link, which CRIU does not follow in a restore: " +
                     remedy_of(mount.source)};
  }
  return {};
}

Result<void> refuse_linked_sources(const std::string& tried, const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  return text ? refuse_linked_sources(tried, bundle, *text) : Result<void>();
}

}  // namespace kymo::runtime
