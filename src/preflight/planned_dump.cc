#include "preflight/planned_dump.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "preflight/criu_config.h"

namespace kymo::preflight {
namespace {

// The file that an annotation of the container names instead of the runtime's own. Empty: none.
std::string annotated_file(const std::string& bundle) {
  const Result<std::string> text = read_file(bundle + "/config.json");
  if (!text) return {};
  return text_of(member(parse_object(*text), "annotations"), "org.criu.config");
}

std::vector<std::string> files_of(const PlannedDump& planned) {
  std::vector<std::string> files = criu_config_files(planned.home);
  if (!planned.container) return files;
  files.insert(files.end(), {"/etc/criu/runc.conf", "/etc/criu/crun.conf"});
  if (planned.bundle.empty()) return files;
  if (std::string named = annotated_file(planned.bundle); !named.empty()) {
    files.push_back(std::move(named));
  }
  return files;
}

}  // namespace

Options options_of(const PlannedDump& planned) {
  Options options;
  options.container = planned.container;
  options.loses_user_namespace = planned.loses_user_namespace;
  options.leave_running = planned.leave_running;
  for (const std::string& file : files_of(planned)) add_configured(file, options);
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
