#include "runtimes/podman/podman_namespaces.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/json_object.h"
#include "preflight/host_names.h"

namespace kymo::runtime {
namespace {

using preflight::HostName;

// A line for each kind of namespace that config.json may name by a pid: "ipc container:ID".
constexpr char kFormat[] =
    "network {{.HostConfig.NetworkMode}}\nipc {{.HostConfig.IpcMode}}\nuts "
    "{{.HostConfig.UTSMode}}\n"
    "pid {{.HostConfig.PidMode}}\n";

// The id of the container whose namespace of this type another one has. Empty: it is not that of a container.
std::string owner_of(const std::string& said, const std::string& type) {
  const std::string begin = "\n" + type + " container:";
  const std::string lines = "\n" + said;
  const std::size_t at = lines.find(begin);
  if (at == std::string::npos) return {};
  const std::size_t id = at + begin.size();
  return lines.substr(id, lines.find('\n', id) - id);
}

bool is_as_it_was(const HostName& now, const std::vector<HostName>& then) {
  return std::any_of(then.begin(), then.end(), [&](const HostName& other) {
    return other.kind == now.kind && other.path == now.path && other.holder == now.holder;
  });
}

}  // namespace

Result<std::optional<std::string>> renew_namespaces(
    const std::string& tried, const PodmanStore& store, const std::string& id,
    const std::vector<HostName>& then,
    const std::function<std::string(const std::string& format)>& asked) {
  const Result<std::string> text = read_file(store.folder_of(id) + "/config.json");
  std::vector<HostName> joined =
      text ? preflight::host_names_of("/", *text) : std::vector<HostName>();
  std::erase_if(joined, [&](const HostName& name) {
    return name.kind != "namespace" || name.holder.empty() || is_as_it_was(name, then);
  });
  if (joined.empty()) return std::optional<std::string>();
  const std::string said = asked(kFormat);
  nlohmann::json config = parse_object(*text);
  bool changed = false;
  for (const HostName& name : joined) {
    const std::string owner = owner_of(said, name.of);
    if (owner.empty()) {
      if (Result<void> good = preflight::check_host_names(tried, {name}, then); !good) {
        return good.error();
      }
      continue;
    }
    const pid_t pid = store.pid_of(owner);
    if (pid == 0) {
      const std::string other = store.name_of(owner);
      return Error{Code::failed_precondition, tried + ": container " + other + ", whose " +
                                                  name.of +
                                                  " namespace it shares, does not run: podman "
                                                  "start " +
                                                  other};
    }
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/" +
                             std::filesystem::path(name.path).filename().string();
    for (nlohmann::json& each : config["linux"]["namespaces"]) {
      if (path == name.path || text_of(each, "path") != name.path) continue;
      each["path"] = path;
      changed = true;
    }
  }
  return changed ? std::optional(config.dump()) : std::nullopt;
}

}  // namespace kymo::runtime
