#include "daemon/state/job_containers.h"

#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_text.h"
#include "base/patience.h"
#include "daemon/database/store.h"

namespace kymo::daemon {

Result<void> make_job_folder(const std::string& path) {
  if (const int error = make_folders(path); error != 0) {
    Error failed = system_error("make the job's folder " + path, error);
    failed.message += advice_on_full_disk(path, error);
    return failed;
  }
  if (chmod(path.c_str(), 0700) != 0) {
    return system_error("protect the job's folder " + path, errno);
  }
  return {};
}

std::string JobContainers::file_of(const std::string& job_id) const {
  return state_dir_ + "/jobs/" + job_id + "/container.json";
}

Result<void> JobContainers::note(const std::string& job_id, const ContainerOf& container) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(job_id);
    if (known != known_.end() && known->second && *known->second == container) return {};
  }
  const nlohmann::json json{{"runtime", runtime::name_of(container.kind)}, {"id", container.id}};
  const std::optional<Result<void>> written = within(
      store::Store::kDiskAnswers,
      [folder = state_dir_ + "/jobs/" + job_id, file = file_of(job_id), text = json_text(json)] {
        Result<void> made = make_job_folder(folder);
        return made ? replace_file(file, text) : made;
      });
  if (written && !*written) return *written;
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(job_id, std::optional(container));
  if (written) return {};
  return Error{Code::unavailable,
               "write " + file_of(job_id) +
                   ", which says that the job is a container: its disk does not answer yet"};
}

Result<std::optional<ContainerOf>> JobContainers::read(const std::string& job_id) const {
  const Result<std::string> text = read_file(file_of(job_id));
  if (!text) return std::optional<ContainerOf>();
  const nlohmann::json json = parse_json(*text);
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
      !json.contains("runtime") || !json["runtime"].is_string()) {
    return Error{Code::data_loss, "the job's file " + file_of(job_id) + " is damaged"};
  }
  const auto name = json["runtime"].get<std::string>();
  const auto kind = runtime::kind_named(name);
  if (!kind || !runtime::row_of(*kind).containers) {
    return Error{Code::unimplemented, "the job's file " + file_of(job_id) + " names the runtime '" +
                                          name + "', but this kymod only knows " +
                                          runtime::runtime_names(true)};
  }
  return std::optional(ContainerOf{*kind, json["id"].get<std::string>()});
}

Result<std::optional<ContainerOf>> JobContainers::of(const std::string& job_id) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(job_id);
  if (known != known_.end()) return known->second;
  return known_.emplace(job_id, read(job_id)).first->second;
}

Result<std::optional<runtime::ProcessId>> JobContainers::process_of(const std::string& job_id) {
  const Result<std::optional<ContainerOf>> container = of(job_id);
  if (!container || !*container) return std::optional<runtime::ProcessId>();
  return process_of(**container);
}

Result<std::optional<runtime::ProcessId>> JobContainers::process_of(
    const ContainerOf& container) const {
  if (!process_of_) return std::optional<runtime::ProcessId>();
  return process_of_(container);
}

void JobContainers::forget(const std::string& job_id) {
  const std::lock_guard lock(mutex_);
  known_.erase(job_id);
}

}  // namespace kymo::daemon
