#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/human.h"
#include "messages.h"
#include "print.h"
#include "target.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

nlohmann::json freeze_json(const v1::FreezeResponse& response) {
  return {{"pid", response.pid()},
          {"runtime", name_of(response.runtime())},
          {"container", response.container()},
          {"how", response.how()},
          {"duration_ns", response.duration_ns()}};
}

void set_frozen(Context& context, const v1::Target& target, bool frozen) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  v1::FreezeRequest request;
  *request.mutable_target() = target;
  const Result<v1::FreezeResponse> response = client->freeze(request, frozen);
  if (!response) return fail(context, response.error());
  if (context.quiet) return;
  if (context.json) return print_json(freeze_json(*response));
  std::cout << (frozen ? "froze pid " : "unfroze pid ") << response->pid() << " in "
            << report::duration(response->duration_ns()) << ": "
            << report::printable(response->how()) << '\n';
}

void add_verb(CLI::App& app, Context& context, const char* name, const char* help, bool frozen) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->require_subcommand(1);
  verb->fallthrough();
  for (const TargetKind& kind : target_kinds()) {
    CLI::App* one = verb->add_subcommand(kind.name, kind.what);
    one->fallthrough();
    auto target = std::make_shared<std::string>();
    one->add_option("target", *target, kind.help)->required()->option_text(kind.shown);
    one->add_flag("--json", context.json, "Print JSON");
    add_quiet_option(*one, context);
    one->callback([&context, target, frozen, &kind] {
      set_frozen(context, target_of(kind, *target), frozen);
    });
  }
}

}  // namespace

void add_freeze(CLI::App& app, Context& context) {
  add_verb(app, context, "freeze", "Freeze a process or container until kymo unfreeze", true);
  add_verb(app, context, "unfreeze", "Let a frozen process or container run on", false);
}

}  // namespace kymo::cli
