#include "checkpoint/preflight/oci_spec.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/json_object.h"
#include "base/proc/boot.h"
#include "base/proc/process.h"

namespace kymo::preflight {
namespace {

namespace fs = std::filesystem;

// The path without the links on its way, but not further than to a namespace. People link to those of processes.
fs::path without_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path folder = fs::canonical(path.parent_path(), error);
    if (error) return path.lexically_normal();
    path = folder / path.filename();
    const fs::path target = fs::read_symlink(path, error);
    const bool is_namespace =
        target.string().find(":[") != std::string::npos;  // "net:[4026531840]"
    if (error || is_namespace) return path;
    path = folder / target;
  }
  return path;
}

}  // namespace

Result<void> refuse_terminal(const std::string& tried, std::string_view spec) {
  const nlohmann::json config = parse_object(spec);
  if (member(member(config, "process"), "terminal") != nlohmann::json(true)) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": it has a terminal (\"terminal\": true in its config.json), whose other end "
                   "kymod cannot take in a restore: start it without a terminal"};
}

std::string bind_source(const std::string& bundle, const nlohmann::json& mount) {
  const nlohmann::json& options = member(mount, "options");
  const bool bound = text_of(mount, "type") == "bind" ||
                     std::any_of(options.begin(), options.end(), [](const nlohmann::json& option) {
                       return option == "bind" || option == "rbind";
                     });
  const std::string from = bound ? text_of(mount, "source") : "";
  return from.empty() ? "" : (fs::path(bundle) / from).lexically_normal().string();
}

std::vector<OciMount> mounts_of(const std::string& bundle, std::string_view spec) {
  const nlohmann::json config = parse_object(spec);
  std::vector<OciMount> mounts;
  const std::string root = text_of(member(config, "root"), "path");
  if (!root.empty()) mounts.push_back({"/", (fs::path(bundle) / root).lexically_normal()});
  for (const nlohmann::json& mount : member(config, "mounts")) {
    const std::string to = text_of(mount, "destination");
    if (!to.starts_with('/')) continue;
    mounts.push_back({(fs::path(to) / "").lexically_normal(), bind_source(bundle, mount)});
  }
  return mounts;
}

std::string holder_of(const std::string& path) {
  constexpr std::string_view kProc = "/proc/";
  const std::string real = without_links(path);
  if (!real.starts_with(kProc)) return {};
  const pid_t pid = std::atoi(real.c_str() + kProc.size());
  if (pid == 1) return {};
  const Result<probe::Process> process = probe::read_process(pid);
  return probe::boot_id() + "/" + std::to_string(pid) + "/" +
         std::to_string(process ? process->start_ticks : 0);
}

std::vector<HostName> host_names_of(const std::string& bundle, std::string_view spec) {
  std::vector<HostName> names;
  for (const OciMount& mount : mounts_of(bundle, spec)) {
    if (mount.source.empty()) continue;
    const bool root = mount.destination == "/";
    std::string to = mount.destination.substr(0, mount.destination.size() - 1);
    names.push_back({root ? "root" : "mount", mount.source, root ? "/" : std::move(to)});
  }
  const nlohmann::json config = parse_object(spec);
  for (const char* type : {"prestart", "createRuntime"}) {  // runc runs no others in a restore
    for (const nlohmann::json& hook : member(member(config, "hooks"), type)) {
      names.push_back({"hook", text_of(hook, "path"), type});
    }
  }
  for (const nlohmann::json& each : member(member(config, "linux"), "namespaces")) {
    const std::string path = text_of(each, "path");
    if (!path.empty()) names.push_back({"namespace", path, text_of(each, "type"), holder_of(path)});
  }
  return names;
}

std::vector<HostName> host_names_in(const std::string& bundle) {
  if (bundle.empty()) return {};
  const Result<std::string> text = read_file(bundle + "/config.json");
  return text ? host_names_of(bundle, *text) : std::vector<HostName>();
}

}  // namespace kymo::preflight
