#include "check_target.h"

#include <sys/types.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "check_report.h"
#include "checkpoint_options.h"
#include "client/client.h"
#include "preflight/planned_dump.h"
#include "preflight/preflight.h"
#include "preflight/report_messages.h"
#include "print.h"
#include "report/human.h"
#include "target.h"

namespace kymo::cli {
namespace {

void print_report(const preflight::Report& report) {
  print_findings(report);
  std::cout << "to write: about " << report::bytes(report.memory_bytes) << " of memory of "
            << report.processes << (report.processes == 1 ? " process" : " processes") << "\n"
            << sum_of(report, "dump") << "\n";
}

// A process is looked at by this program, which shows what its user may see.
Result<preflight::Report> look_at_process(pid_t pid, const v1::CheckpointOptions& asked) {
  const char* const home = std::getenv("HOME");
  return preflight::look_at(
      pid, preflight::options_of({.asked = asked, .home = home == nullptr ? "" : home}));
}

// kymod knows the processes of a container, and may see them all.
Result<preflight::Report> ask_kymod(client::Client& client, const v1::Target& target,
                                    const v1::CheckpointOptions& asked) {
  v1::CheckRequest request;
  *request.mutable_target() = target;
  *request.mutable_options() = asked;
  const Result<v1::CheckResponse> response = client.check(request);
  if (!response) return response.error();
  return preflight::report_of(*response);
}

Result<preflight::Report> look(const Context& context, const v1::Target& target,
                               const v1::CheckpointOptions& asked) {
  if (target.has_pid()) return look_at_process(target.pid(), asked);
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  if (!target.has_job()) return ask_kymod(*client, target, asked);
  const Result<v1::InspectResponse> seen = client->inspect(target.job());
  if (!seen) return seen.error();
  if (!seen->has_job() || seen->job().state() != v1::Job::RUNNING) {
    return Error{Code::failed_precondition,
                 "cannot check " + target.job() + ": it is no job that runs; see kymo ps"};
  }
  const v1::Runtime runtime = seen->job().runtime();
  if (runtime != v1::RUNTIME_UNSPECIFIED && runtime != v1::PROCESS) {
    return ask_kymod(*client, target, asked);
  }
  return look_at_process(seen->job().pid(), asked);
}

void add_check_kind(CLI::App& check, Context& context, const TargetKind& kind) {
  CLI::App* verb = check.add_subcommand(
      kind.name, kind.runtime == v1::PROCESS
                     ? "List what would make the dump of a process and its descendants fail, "
                       "without stopping them"
                     : "List what would make the dump of a container of " + kind.name +
                           " fail, without stopping it");
  verb->footer(
      "Exit code: 0 nothing was found that makes the dump fail, 1 something was, 3 nothing was but "
      "not all could be seen");
  verb->fallthrough();
  auto text = std::make_shared<std::string>();
  auto options = std::make_shared<v1::CheckpointOptions>();
  verb->add_option("target", *text, kind.help)->required()->option_text(kind.shown);
  add_checkpoint_options(*verb, *options);
  add_dump_only_options(*verb, *options);
  verb->add_flag("--json", context.json, "Print JSON");
  verb->callback([&context, text, options, &kind] {
    check_target(context, target_of(kind, *text), *options);
  });
}

}  // namespace

void check_target(Context& context, const v1::Target& target,
                  const v1::CheckpointOptions& options) {
  const Result<preflight::Report> report = look(context, target, options);
  if (!report) return fail(context, report.error());
  if (context.json) {
    print_json(to_json(*report));
  } else {
    print_report(*report);
  }
  context.exit_code = exit_code_of(*report);
}

void add_check_targets(CLI::App& check, Context& context) {
  for (const TargetKind& kind : target_kinds()) add_check_kind(check, context, kind);
}

}  // namespace kymo::cli
