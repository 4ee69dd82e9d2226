#include "daemon/request/dump_record.h"

#include "checkpoint/runtimes/shared/restore_checks.h"
#include "daemon/request/stream_choice.h"
#include "daemon/state/kinds.h"
#include "daemon/state/stats_json.h"

namespace kymo::daemon {

using nlohmann::json;

json container_json(const Target& target) {
  return {{"runtime", runtime::name_of(target.kind)},
          {"id", target.id},
          {"name", target.name},
          {"bundle", runtime::row_of(target.kind).has_bundles ? target.bundle : ""},
          {"frozen", target.frozen},
          {"read_only_root", target.read_only_root}};
}

json options_json(const v1::CheckpointOptions& options) {
  return {{"tcp_established", options.tcp_established()},
          {"shell_job", options.shell_job()},
          {"file_locks", options.file_locks()},
          {"external_unix_sockets", options.external_unix_sockets()},
          {"tcp_close", options.tcp_close()},
          {"cgroups", criu::name_of(to_options(options).cgroups)}};
}

std::string conditions_of(const v1::DumpRequest& asked, const std::optional<criu::Encoding>& stream,
                          bool memory_first, bool stacks) {
  std::string text;
  const auto add = [&text](bool given, const std::string& name) {
    if (given) text += (text.empty() ? "" : ", ") + name;
  };
  add(asked.leave_running(), "leave running");
  if (stream && is_compressed(stream)) {
    // Level 1 is the default. Before, no entry had a level.
    const int level = level_of(*stream);
    add(true, "stream " + std::string(criu::name_of(stream->compression)) +
                  (level == 1 ? "" : " level " + std::to_string(level)));
  }
  add(memory_first, "memory first");
  add(asked.no_stream(), "no stream");
  add(asked.pre_dumps() != 0, "pre-dump");
  add(asked.sync(), std::string(kSync));
  add(asked.checksums(), "checksums");
  add(asked.prove(), std::string(kProve));
  add(stacks, "stacks");
  return text;
}

const json& machine_json() {
  static const json kMachine = to_json(runtime::this_machine());
  return kMachine;
}

}  // namespace kymo::daemon
