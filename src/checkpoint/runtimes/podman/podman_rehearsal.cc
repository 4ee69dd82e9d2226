#include "checkpoint/runtimes/podman/podman_rehearsal.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_object.h"

namespace kymo::runtime {

namespace fs = std::filesystem;

std::string record_of_runc(const std::string& id) {
  return "/run/runc/" + id;
}

Result<void> check_runs_by_runc(const std::string& tried, const std::string& id,
                                const nlohmann::json& inspected) {
  std::error_code error;
  const bool by_runc = inspected.is_null()
                           ? fs::exists(record_of_runc(id), error)
                           : fs::path(text_of(inspected, "OCIRuntime")).filename() == "runc";
  if (by_runc) return {};
  return Error{Code::unimplemented,
               tried +
                   ": its restore can be rehearsed only if podman runs it by runc (podman run "
                   "--runtime runc)"};
}

std::string layers_of(const nlohmann::json& inspected) {
  const nlohmann::json& folders = member(member(inspected, "GraphDriver"), "Data");
  const std::string upper = text_of(folders, "UpperDir");
  const std::string lower = text_of(folders, "LowerDir");
  return upper.empty() || lower.empty() ? "" : upper + ":" + lower;
}

}  // namespace kymo::runtime
