#include <iostream>
#include <memory>

#include "client/client.h"
#include "print.h"
#include "report/human.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::vector<std::string> row_of(const v1::Checkpoint& checkpoint) {
  const auto or_dash = [](bool known, const std::string& text) { return known ? text : "-"; };
  const std::uint64_t frozen_us = checkpoint.stats().frozen_time_us();
  return {checkpoint.id(),
          or_dash(!checkpoint.job().empty(), checkpoint.job()),
          local_time(checkpoint.created_unix_ns()),
          lower(v1::Checkpoint::State_Name(checkpoint.state())),
          or_dash(checkpoint.image_bytes() != 0,
                  report::bytes(static_cast<double>(checkpoint.image_bytes()))),
          or_dash(checkpoint.duration_ns() != 0, duration_text(checkpoint.duration_ns())),
          or_dash(checkpoint.has_stats(), duration_text(frozen_us * 1000)),
          report::printable(checkpoint.directory()),
          report::printable(checkpoint.error())};
}

void list_checkpoints(Context& context, const v1::CheckpointsRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::CheckpointsResponse> response = client->checkpoints(request);
  if (!response) return fail(context, response.error());
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
      {"ID", "JOB", "WHEN", "STATE", "SIZE", "DURATION", "FROZEN", "DIRECTORY", "NOTE"}};
  for (const v1::Checkpoint& checkpoint : response->checkpoints()) {
    json.push_back(to_json(checkpoint));
    rows.push_back(row_of(checkpoint));
  }
  if (context.json) return print_json(json);
  print_table(rows);
}

}  // namespace

void add_checkpoints(CLI::App& app, Context& context) {
  CLI::App* checkpoints = app.add_subcommand("checkpoints", "List the checkpoints, newest last");
  auto job = std::make_shared<std::string>();
  checkpoints->fallthrough();
  checkpoints->add_option("job", *job, "Those of this job alone: its name or id");
  checkpoints->add_flag("--json", context.json, "Print JSON");
  checkpoints->callback([&context, job] {
    v1::CheckpointsRequest request;
    request.set_job(*job);
    list_checkpoints(context, request);
  });
}

}  // namespace kymo::cli
