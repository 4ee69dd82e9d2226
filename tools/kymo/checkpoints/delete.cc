#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/human.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct DeleteArguments {
  std::vector<std::string> targets;
  bool with_checkpoints = false;
  bool failed = false;
};

void print(const v1::DeleteResponse& response) {
  for (const std::string& checkpoint : response.checkpoints()) {
    std::cout << "deleted checkpoint " << checkpoint << '\n';
  }
  for (const std::string& checkpoint : response.forgotten()) {
    std::cout << "forgot checkpoint " << checkpoint << ": its files were gone already\n";
  }
  if (!response.job().empty()) std::cout << "deleted job " << response.job() << '\n';
  if (response.freed_bytes() != 0) {
    std::cout << "freed " << report::bytes(response.freed_bytes()) << '\n';
  }
}

// Deletes one after the other. If one cannot be deleted, the others still are.
void delete_all(Context& context, DeleteArguments arguments) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  if (arguments.targets.empty()) arguments.targets.emplace_back();  // --failed: of all jobs
  nlohmann::json json{{"checkpoints", nlohmann::json::array()},
                      {"forgotten", nlohmann::json::array()},
                      {"jobs", nlohmann::json::array()},
                      {"freed_bytes", 0}};
  std::uint64_t freed = 0;
  for (const std::string& target : arguments.targets) {
    v1::DeleteRequest request;
    const bool path = target.find('/') != std::string::npos;
    request.set_target(path ? absolute_path(target) : target);
    request.set_with_checkpoints(arguments.with_checkpoints);
    request.set_failed(arguments.failed);
    const Result<v1::DeleteResponse> response = client->remove(request);
    if (!response) {
      fail(context, response.error());
      continue;
    }
    for (const std::string& warning : response->warnings()) say(warning);
    for (const std::string& id : response->checkpoints()) json["checkpoints"].push_back(id);
    for (const std::string& id : response->forgotten()) json["forgotten"].push_back(id);
    if (!response->job().empty()) json["jobs"].push_back(response->job());
    freed += response->freed_bytes();
    if (!context.json && !context.quiet) print(*response);
  }
  json["freed_bytes"] = freed;
  if (context.json && !context.quiet) print_json(json);
}

}  // namespace

void add_delete(CLI::App& app, Context& context) {
  CLI::App* remove = app.add_subcommand("delete", "Delete checkpoints, or jobs that do not run");
  auto arguments = std::make_shared<DeleteArguments>();
  remove->fallthrough();
  remove->add_option("target", arguments->targets,
                     "Checkpoints (id or directory) and jobs (name or id)");
  remove->add_flag("--all", arguments->with_checkpoints, "Also delete the checkpoints of each job");
  remove->add_flag("--failed", arguments->failed,
                   "Delete only failed checkpoints: those of the given jobs, or of all");
  remove->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*remove, context);
  remove->callback([&context, arguments] {
    if (arguments->targets.empty() && !arguments->failed) {
      throw CLI::RequiredError("target");
    }
    delete_all(context, *arguments);
  });
}

}  // namespace kymo::cli
