#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "client/client.h"
#include "lens/report/api_json.h"
#include "lens/report/human.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string recorder_text(const v1::Recorder& recorder) {
  if (!recorder.running()) return "stopped";
  return "records every " + report::duration(recorder.interval_ns()) + ", " +
         report::with_commas(recorder.ticks_missed()) + " of " +
         report::with_commas(recorder.ticks_due()) + " ticks missed";
}

// Why this CRIU does nothing on this kernel. Empty: it does.
std::string too_old(const std::string& version) {
  const std::optional<criu::Version> parsed = criu::Version::parse(version);
  return parsed ? runtime::too_old_for_kernel(*parsed, runtime::running_kernel()) : "";
}

// The CRIU that dumps comes first: the fallback, if the other one is too old for this kernel.
void add_crius(const v1::HealthResponse& health, Rows& rows) {
  const std::string first = health.criu_version() + " at " + health.criu_path();
  const std::string second = health.criu_fallback_version() + " at " + health.criu_fallback_path();
  if (health.criu_fallback_path().empty()) {
    rows.push_back({"CRIU", first});
  } else if (const std::string why = too_old(health.criu_version());
             !why.empty() && too_old(health.criu_fallback_version()).empty()) {
    rows.push_back({"CRIU", second + " (--criu-fallback)"});
    rows.push_back({"CRIU, not used", first + " (--criu): " + why.substr(0, why.find(';'))});
  } else {
    rows.push_back({"CRIU", first});
    rows.push_back({"CRIU, fallback", second});
  }
}

void print(const v1::HealthResponse& health) {
  Rows rows{{"kymod", health.version() + ", pid " + std::to_string(health.pid()) + ", up for " +
                          report::duration(health.uptime_ns())},
            {"health", health.troubles().empty() ? "good" : "NOT GOOD"}};
  for (const std::string& trouble : health.troubles()) rows.push_back({"", trouble});
  add_crius(health, rows);
  rows.push_back({"recorder", recorder_text(health.recorder())});
  rows.push_back({"state directory", health.state_directory()});
  if (!health.profiles_directory().empty()) {
    rows.push_back({"stack profiles", health.profiles_directory()});
  }
  rows.push_back({"HTTP", health.http_address()});
  print_table(rows);
}

nlohmann::json json_of(const v1::HealthResponse& health) {
  return {
      {"version", health.version()},
      {"pid", health.pid()},
      {"uptime_ns", health.uptime_ns()},
      {"healthy", health.troubles().empty()},
      {"troubles", std::vector<std::string>(health.troubles().begin(), health.troubles().end())},
      {"criu", {{"version", health.criu_version()}, {"path", health.criu_path()}}},
      {"criu_fallback",
       {{"version", health.criu_fallback_version()}, {"path", health.criu_fallback_path()}}},
      {"recorder", report::to_json(health.recorder())},
      {"state_directory", health.state_directory()},
      {"profiles_directory", health.profiles_directory()},
      {"http_address", health.http_address()}};
}

void show_status(Context& context) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::HealthResponse> health = client->health();
  if (!health) return fail(context, health.error());
  if (!health->troubles().empty()) context.exit_code = 1;
  if (context.quiet) return;
  if (context.json) return print_json(json_of(*health));
  print(*health);
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  CLI::App* status = app.add_subcommand(
      "status", "Show whether kymod works: version, CRIU, recorder, uptime; exit 1 if not");
  status->fallthrough();
  status->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*status, context);
  status->callback([&context] { show_status(context); });
}

}  // namespace kymo::cli
