#include "checkpoints/check_checkpoint.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "base/json_text.h"
#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "checkpoints/check_report.h"
#include "checkpoints/checkpoint_named.h"
#include "confined.h"
#include "lens/report/checkpoint_record.h"
#include "lens/report/human.h"
#include "lens/report/verified_checkpoint.h"
#include "print.h"

namespace kymo::cli {
namespace {

// Of these CRIU programs, the ones that can be started.
std::optional<runtime::CriuChoice> crius_at(const std::vector<std::string>& names) {
  std::vector<runtime::CriuProgram> found;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    criu::ClientOptions options;
    options.path = name;
    options.timeout = std::chrono::seconds(10);
    if (const auto version = criu::Client(std::move(options)).version(); version) {
      found.push_back({name, "", *version});
    }
  }
  if (found.empty()) return {};
  return runtime::CriuChoice(std::move(found), runtime::running_kernel());
}

void print_checkpoint(const std::string& path, const runtime::PlannedRestore& planned,
                      const preflight::Report& report) {
  print_findings(report, "a restore of " + path);
  std::cout << report::printable(path) << ": " << report::bytes(planned.image_bytes)
            << " of images of " << planned.processes
            << (planned.processes == 1 ? " process" : " processes") << "\n"
            << sum_of(report, "restore") << "\n";
}

nlohmann::json json_of(const std::string& path, const runtime::PlannedRestore& planned,
                       const preflight::Report& report) {
  nlohmann::json json = to_json(report);
  for (const char* of_a_process :
       {"pid", "memory_bytes", "deleted_bytes", "shared_memory_bytes", "ended"})
    json.erase(of_a_process);
  json["checked"] = "restore";
  json["path"] = path;
  json["image_bytes"] = planned.image_bytes;
  return json;
}

}  // namespace

void check_checkpoint(Context& context, const std::string& checkpoint, const std::string& criu,
                      const std::string& fallback) {
  const std::string path = checkpoint_named(context, checkpoint);
  const std::vector<std::string> texts =
      make_confined(context, {path}, 1, [&](std::vector<std::string>& made) {
        const auto seen = report::verify_checkpoint(path, report::Depth::small);
        if (!seen) return fail(context, seen.error());
        runtime::PlannedRestore planned = report::planned_restore(*seen);
        const auto record = planned.container ? Result<nlohmann::json>(nlohmann::json())
                                              : report::read_checkpoint_record(path);
        if (record && record->is_object()) report::add_record(planned, *record);
        made[0] = json_text(to_json(planned));
      });
  if (context.exit_code != 0) return;
  const runtime::PlannedRestore planned = runtime::planned_restore_of(parse_object(texts.front()));
  const preflight::Report report = look_before_restore(planned, crius_at({criu, fallback}));
  if (context.quiet) {
    // The exit code says it all.
  } else if (context.json) {
    print_json(json_of(path, planned, report));
  } else {
    print_checkpoint(path, planned, report);
  }
  context.exit_code = exit_code_of(report);
}

}  // namespace kymo::cli
