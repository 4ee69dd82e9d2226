#include "checkpoint/runtimes/podman/podman_store.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

using nlohmann::json;

// podman's lists of containers. Containers of `podman run --rm` can be in the second one.
constexpr const char* kLists[] = {"containers.json", "volatile-containers.json"};

bool has_name(const json& container, const std::string& name) {
  const json names = container.value("names", json::array());
  for (const json& one : names) {
    if (one.is_string() && one.get<std::string>() == name) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<PodmanStore> PodmanStore::from_info(const std::string& text) {
  const json info = parse_json(text);
  if (info.is_object() && info.contains("store") && info["store"].is_object()) {
    const json& store = info["store"];
    const std::string driver = store.value("graphDriverName", "");
    const std::string graph = store.value("graphRoot", "");
    const std::string run = store.value("runRoot", "");
    if (!driver.empty() && !graph.empty() && !run.empty()) {
      const std::string folder = "/" + driver + "-containers";
      return PodmanStore{graph + folder, run + folder};
    }
  }
  return Error{Code::data_loss, "podman info does not say where podman keeps its containers"};
}

std::optional<std::string> PodmanStore::id_of(const std::string& name) const {
  std::optional<std::string> begins;
  bool several = false;
  for (const char* list : kLists) {
    const Result<std::string> text = read_file(containers + "/" + list);
    const json all = text ? parse_json(*text) : json::array();
    for (const json& container : all) {
      if (!container.is_object()) {
        continue;
      }
      const std::string id = container.value("id", "");
      if (id == name || has_name(container, name)) {
        return id;
      }
      if (!name.empty() && id.starts_with(name)) {
        several = begins.has_value();
        begins = id;
      }
    }
  }
  return several ? std::nullopt : begins;
}

std::string PodmanStore::name_of(const std::string& id) const {
  for (const char* list : kLists) {
    const Result<std::string> text = read_file(containers + "/" + list);
    const json all = text ? parse_json(*text) : json::array();
    for (const json& container : all) {
      if (!container.is_object() || container.value("id", json()) != json(id)) continue;
      const json names = container.value("names", json());
      const bool named = names.is_array() && !names.empty() && names[0].is_string();
      return named ? names[0].get<std::string>() : "";
    }
  }
  return {};
}

pid_t PodmanStore::pid_of(const std::string& id) const {
  const Result<std::string> text = read_file(run_containers + "/" + id + "/userdata/pidfile");
  const pid_t pid = text ? static_cast<pid_t>(std::atoi(text->c_str())) : 0;
  if (pid <= 0 || !probe::process_lives(pid, 0)) {
    return 0;
  }
  // If the container has ended, another process may have its pid now.
  const Result<std::string> groups = read_file("/proc/" + std::to_string(pid) + "/cgroup");
  return groups && groups->find(id) != std::string::npos ? pid : 0;
}

bool PodmanStore::removes_when_ended(const std::string& id) const {
  const Result<std::string> text = read_file(folder_of(id) + "/config.json");
  if (!text) return false;
  const nlohmann::json config = parse_object(*text);
  return text_of(member(config, "annotations"), "io.podman.annotations.autoremove") == "TRUE";
}

}  // namespace kymo::runtime
