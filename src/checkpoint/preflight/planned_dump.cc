#include "checkpoint/preflight/planned_dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "checkpoint/preflight/criu_config.h"
#include "checkpoint/preflight/oci_spec.h"

namespace kymo::preflight {
namespace {

// Empty if the bundle is not known, or cannot be read.
nlohmann::json specification_in(const std::string& bundle) {
  if (bundle.empty()) return nlohmann::json::object();
  const Result<std::string> text = read_file(bundle + "/config.json");
  return text ? parse_object(*text) : nlohmann::json::object();
}

// An annotation of the container may name a file instead of the runtime's own.
std::vector<std::string> files_of_container(const nlohmann::json& specification) {
  std::vector<std::string> files{"/etc/criu/runc.conf", "/etc/criu/crun.conf"};
  std::string named = text_of(member(specification, "annotations"), "org.criu.config");
  if (!named.empty()) files.push_back(std::move(named));
  return files;
}

// The runtime names the bind mounts of its container to CRIU.
void add_names(const PlannedDump& planned, Options& options) {
  options.names = host_names_in(planned.bundle);
  for (HostName& name : options.names) {
    if (name.kind == "mount") options.external.push_back("mnt[" + name.of + "]");
    if (planned.renewed.find(name.kind) != std::string_view::npos) name.holder.clear();
  }
  // The container is in its namespaces, whatever names them later.
  std::erase_if(options.names, [&](const HostName& name) {
    return name.kind != "namespace" && planned.renewed.find(name.kind) != std::string_view::npos;
  });
}

}  // namespace

Options options_by_files(const std::string& config_json) {
  Options options;
  add_configured(kConfigOfAll, options);
  for (const std::string& file : files_of_container(parse_object(config_json))) {
    add_configured(file, options);
  }
  return options;
}

Options options_of(const PlannedDump& planned) {
  Options options;
  options.container = planned.container;
  options.loses_user_namespace = planned.loses_user_namespace;
  options.leave_running = planned.leave_running;
  const nlohmann::json specification = specification_in(planned.bundle);
  for (const std::string& file : criu_config_files()) add_configured(file, options);
  if (planned.container) {
    for (const std::string& file : files_of_container(specification)) add_configured(file, options);
  }
  add_names(planned, options);
  const v1::CheckpointOptions& asked = planned.asked;
  options.tcp_established |= asked.tcp_established() || asked.tcp_close();
  options.skip_in_flight |= asked.skip_in_flight();
  options.link_remap |= asked.link_remap();
  if (asked.ghost_limit() != 0) options.ghost_limit_bytes = asked.ghost_limit();
  options.shell_job |= asked.shell_job();
  options.external_unix_sockets |= asked.external_unix_sockets();
  options.file_locks |= asked.file_locks();
  options.external.insert(options.external.end(), asked.external().begin(), asked.external().end());
  return options;
}

}  // namespace kymo::preflight
