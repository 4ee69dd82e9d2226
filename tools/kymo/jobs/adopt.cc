#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "print.h"
#include "target.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void adopt(Context& context, const v1::AdoptRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::RunResponse> response = client->adopt(request);
  if (!response) return fail(context, response.error());
  if (context.quiet) return;
  if (context.json) return print_json(report::to_json(response->job()));
  std::cout << "pid " << response->job().pid() << " is job " << response->job().name() << '\n';
}

}  // namespace

void add_adopt(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("adopt", "Make a job of a process or container that runs already");
  verb->require_subcommand(1);
  verb->fallthrough();
  for (const TargetKind& kind : target_kinds()) {
    CLI::App* one = verb->add_subcommand(kind.name, kind.what);
    one->fallthrough();
    auto target = std::make_shared<std::string>();
    auto name = std::make_shared<std::string>();
    one->add_option("target", *target, kind.help)->required()->option_text(kind.shown);
    one->add_option("--name", *name, "Name of the job (default: made from the program's name)");
    one->add_flag("--json", context.json, "Print JSON");
    add_quiet_option(*one, context);
    one->callback([&context, target, name, &kind] {
      v1::AdoptRequest request;
      *request.mutable_target() = target_of(kind, *target);
      request.set_name(*name);
      adopt(context, request);
    });
  }
}

}  // namespace kymo::cli
