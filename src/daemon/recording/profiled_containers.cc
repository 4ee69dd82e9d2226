#include "daemon/recording/profiled_containers.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "base/file.h"
#include "profiler/kept/cgroup_rule.h"

namespace kymo::daemon {

std::vector<runtime::ContainerName> profiled_containers_of(const Config& config) {
  std::vector<runtime::ContainerName> names;
  for (const std::string& text : config.profiles_only) {
    if (auto name = runtime::container_name_in(text)) names.push_back(*std::move(name));
  }
  return names;
}

Result<std::string> cgroup_of(const runtime::Runtimes& runtimes,
                              const runtime::ContainerName& name) {
  const Result<runtime::Container> found = runtimes.of(name.kind).find(name.name);
  if (!found) return found.error();
  const std::string path = "/proc/" + std::to_string(found->process.pid) + "/cgroup";
  const Result<std::string> lines = read_file(path);
  if (!lines) return lines.error();
  std::string cgroup = profiles::cgroup_path_in(*lines);
  if (!cgroup.empty()) return cgroup;
  return Error{Code::not_found, "it is in no cgroup of its own"};
}

ProfiledContainers::ProfiledContainers(std::vector<runtime::ContainerName> names, Find find)
    : names_(std::move(names)), find_(std::move(find)) {
  if (names_.empty()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    constexpr std::chrono::seconds kEvery{10};
    std::vector<std::string> said(names_.size());
    while (!stop.stop_requested()) {
      look(said);
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, stop, kEvery, [] { return false; });
    }
  });
}

void ProfiledContainers::look(std::vector<std::string>& said) {
  std::vector<std::string> cgroups;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    Result<std::string> cgroup = find_(names_[i]);
    std::string text = cgroup ? "those of its cgroup " + *cgroup + " are kept"
                              : "none are kept now: " + cgroup.error().message;
    if (text != said[i]) {
      spdlog::info("stack profiles of {}:{}: {}", runtime::name_of(names_[i].kind), names_[i].name,
                   text);
    }
    said[i] = std::move(text);
    if (cgroup) cgroups.push_back(*std::move(cgroup));
  }
  const std::lock_guard lock(mutex_);
  cgroups_ = std::move(cgroups);
}

std::vector<std::string> ProfiledContainers::cgroups() const {
  const std::lock_guard lock(mutex_);
  return cgroups_;
}

}  // namespace kymo::daemon
