#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "lens/report/human.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::string line_of(const v1::Progress& ended) {
  const bool dump = ended.kind() == v1::Progress::DUMP;
  std::string line = dump ? "the dump" : "the restore";
  if (!ended.job().empty()) line += " of job " + ended.job();
  if (ended.job().empty() && ended.pid() != 0) line += " of pid " + std::to_string(ended.pid());
  if (ended.state() == v1::Progress::SUCCEEDED) {
    return line + " could not be cancelled: it had already succeeded";
  }
  if (ended.state() == v1::Progress::FAILED) return line + " failed: " + ended.error();
  return line + " was cancelled: " + ended.error();
}

void cancel(Context& context, const std::string& target) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::CancelResponse> response = client->cancel(target);
  if (!response) return fail(context, response.error());
  nlohmann::json json = nlohmann::json::array();
  for (const v1::Progress& ended : response->requests()) {
    json.push_back(report::to_json(ended));
    if (!context.json && !context.quiet) std::cout << report::printable(line_of(ended)) << '\n';
    if (ended.state() != v1::Progress::CANCELLED) context.exit_code = 1;
  }
  if (context.json && !context.quiet) print_json(json);
}

}  // namespace

void add_cancel(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "cancel", "Cancel a running dump or restore; a process that was being dumped runs on");
  auto target = std::make_shared<std::string>();
  verb->fallthrough();
  verb->add_option(
          "target", *target,
          "Name or id of a job or container, a PID, or id of a request (see kymo progress --json)")
      ->required()
      ->option_text("JOB|CONTAINER|PID|REQUEST");
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, target] { cancel(context, *target); });
}

}  // namespace kymo::cli
