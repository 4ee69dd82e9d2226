#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "messages.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void list_checkpoints(Context& context, const v1::CheckpointsRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::CheckpointsResponse> response = client->checkpoints(request);
  if (!response) return fail(context, response.error());
  nlohmann::json json = nlohmann::json::array();
  for (const v1::Checkpoint& checkpoint : response->checkpoints()) {
    json.push_back(report::to_json(checkpoint));
  }
  if (context.json) return print_json(json);
  print_table(rows_of(response->checkpoints(), ""));
}

}  // namespace

void add_checkpoints(CLI::App& app, Context& context) {
  CLI::App* checkpoints = app.add_subcommand("checkpoints", "List the checkpoints, newest last");
  auto job = std::make_shared<std::string>();
  checkpoints->fallthrough();
  checkpoints->add_option("job", *job, "List only the checkpoints of this job (name or id)");
  checkpoints->add_flag("--json", context.json, "Print JSON");
  checkpoints->callback([&context, job] {
    v1::CheckpointsRequest request;
    request.set_job(*job);
    list_checkpoints(context, request);
  });
}

}  // namespace kymo::cli
