#include "checkpoints/check_target.h"

#include <sys/types.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/preflight/planned_dump.h"
#include "checkpoint/preflight/preflight.h"
#include "checkpoint/preflight/report_messages.h"
#include "checkpoints/check_report.h"
#include "checkpoints/checkpoint_options.h"
#include "client/client.h"
#include "lens/report/human.h"
#include "messages.h"
#include "print.h"
#include "target.h"

namespace kymo::cli {
namespace {

// What was found, and what the dump will probably take.
struct TargetReport {
  preflight::Report report;
  v1::Forecast forecast;
  std::string no_forecast;  // why there is none
};

std::string times_text(const v1::Forecast::Range& range) {
  constexpr std::uint64_t kTooWide = 20;
  if (range.high() / kTooWide > range.low()) {
    return "from " + report::duration(range.low()) + " to " + report::duration(range.high()) +
           " (earlier dumps differ too much to say more)";
  }
  return "about " + report::duration(range.expected()) + " (" + report::duration(range.low()) +
         " to " + report::duration(range.high()) + ")";
}

std::string forecast_text(const TargetReport& looked) {
  const v1::Forecast& forecast = looked.forecast;
  if (!looked.no_forecast.empty()) return "not known: " + looked.no_forecast;
  if (forecast.dumps() == 0) return "not known: there is no earlier dump like it to this disk";
  std::string text = "stands still " + times_text(forecast.stood_still_ns()) + ", in all " +
                     times_text(forecast.total_ns()) + ", judged by " +
                     std::to_string(forecast.dumps()) + " earlier " +
                     (forecast.dumps() == 1 ? "dump" : "dumps");
  if (forecast.of_others()) return text + " of other processes";
  return text + ", which wrote " + report::bytes(forecast.written_bytes().low()) + " to " +
         report::bytes(forecast.written_bytes().high());
}

std::string checked_text(const v1::Target& target) {
  if (target.has_pid()) return "process " + std::to_string(target.pid());
  if (target.has_job()) return "job " + target.job();
  return name_of(target.container().runtime()) + " container " + target.container().name();
}

std::string files_text(const preflight::Report& report) {
  const auto text = [](std::uint64_t bytes, const char* of) {
    return bytes == 0 ? "" : ", and " + report::bytes(bytes) + " of " + of;
  };
  return text(report.deleted_bytes, "deleted files that are in use") +
         text(report.shared_memory_bytes, "files in /dev/shm");
}

void print_report(const TargetReport& looked, const v1::Target& target) {
  const preflight::Report& report = looked.report;
  print_findings(report, "a dump of " + checked_text(target));
  std::cout << "to write: about " << report::bytes(report.memory_bytes) << " of memory of "
            << report.processes << (report.processes == 1 ? " process" : " processes")
            << files_text(report) << "\n"
            << "forecast: " << report::printable(forecast_text(looked)) << "\n"
            << sum_of(report, "dump") << "\n";
}

nlohmann::json json_of(const v1::Forecast::Range& range) {
  return {{"low", range.low()}, {"expected", range.expected()}, {"high", range.high()}};
}

nlohmann::json json_of(const TargetReport& looked) {
  nlohmann::json json = to_json(looked.report);
  json["checked"] = "dump";
  const v1::Forecast& forecast = looked.forecast;
  json["forecast"] = {{"dumps", forecast.dumps()}};
  if (forecast.dumps() == 0) return json;
  json["forecast"]["of_others"] = forecast.of_others();
  json["forecast"]["stood_still_ns"] = json_of(forecast.stood_still_ns());
  json["forecast"]["total_ns"] = json_of(forecast.total_ns());
  if (!forecast.of_others()) {
    json["forecast"]["written_bytes"] = json_of(forecast.written_bytes());
  }
  return json;
}

// kymod knows the processes of a container, and may see them all.
Result<TargetReport> ask_kymod(client::Client& client, const v1::CheckRequest& planned) {
  const Result<v1::CheckResponse> response = client.check(planned);
  if (!response) return response.error();
  return TargetReport{preflight::report_of(*response), response->forecast(), ""};
}

// kymod would dump the process, from its own mounts and with its own rights. Only it knows earlier dumps, and whether the
// images have room. Without kymod, this program looks.
Result<TargetReport> look_at_process(Result<client::Client>& client,
                                     const v1::CheckRequest& planned, pid_t pid) {
  Result<TargetReport> known = client ? ask_kymod(*client, planned) : client.error();
  if (known) return known;
  Result<preflight::Report> report =
      preflight::look_at(pid, preflight::options_of({.asked = planned.options()}));
  if (!report) return report.error();
  return TargetReport{*std::move(report), {}, known.error().message};
}

Result<TargetReport> look(const Context& context, const v1::CheckRequest& planned) {
  const v1::Target& target = planned.target();
  Result<client::Client> client = client::Client::connect(context.socket);
  if (target.has_pid()) return look_at_process(client, planned, target.pid());
  if (!client) return client.error();
  if (!target.has_job()) return ask_kymod(*client, planned);
  const Result<v1::InspectResponse> seen = client->inspect(target.job());
  if (!seen) return seen.error();
  if (!seen->has_job() || seen->job().state() != v1::Job::RUNNING) {
    return Error{Code::failed_precondition,
                 "cannot check " + target.job() + ": it is no job that runs; see kymo ps"};
  }
  const v1::Runtime runtime = seen->job().runtime();
  if (runtime != v1::RUNTIME_UNSPECIFIED && runtime != v1::PROCESS) {
    return ask_kymod(*client, planned);
  }
  return look_at_process(client, planned, seen->job().pid());
}

void add_check_kind(CLI::App& check, Context& context, const TargetKind& kind) {
  CLI::App* verb = check.add_subcommand(
      kind.name,
      kind.runtime == v1::PROCESS
          ? "Check a dump: list what would make the dump of a process and its descendants "
            "fail, without stopping them"
          : "Check a dump: list what would make the dump of a container of " + kind.name +
                " fail, without stopping it");
  verb->footer(
      "Exit code: 0 nothing was found that makes the dump fail, 1 something was, 3 nothing was but "
      "not all could be seen");
  verb->fallthrough();
  auto text = std::make_shared<std::string>();
  auto planned = std::make_shared<v1::CheckRequest>();
  verb->add_option("target", *text, kind.help)->required()->option_text(kind.shown);
  v1::CheckpointOptions& options = *planned->mutable_options();
  add_checkpoint_options(*verb, options);
  add_dump_only_options(*verb, options);
  if (kind.runtime != v1::PROCESS) hide_options_of_processes(*verb);
  verb->add_flag_callback(
      "--leave-running", [planned] { planned->set_leave_running(true); },
      "The dump that is planned lets it run on");
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, text, planned, &kind] {
    *planned->mutable_target() = target_of(kind, *text);
    check_target(context, *planned);
  });
}

}  // namespace

void check_target(Context& context, const v1::CheckRequest& planned) {
  const Result<TargetReport> looked = look(context, planned);
  if (!looked) return fail(context, looked.error());
  if (context.quiet) {
    // The exit code says it all.
  } else if (context.json) {
    print_json(json_of(*looked));
  } else {
    print_report(*looked, planned.target());
  }
  context.exit_code = exit_code_of(looked->report);
}

void add_check_targets(CLI::App& check, Context& context) {
  for (const TargetKind& kind : target_kinds()) add_check_kind(check, context, kind);
}

}  // namespace kymo::cli
