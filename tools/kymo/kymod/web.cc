#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "browser.h"
#include "client/client.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void show_web(Context& context, bool open) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::WebResponse> response = client->web();
  if (!response) return fail(context, response.error());
  if (context.json) {
    print_json({{"url", response->url()}});
  } else {
    std::cout << response->url() << std::endl;  // before the browser is there
  }
  if (!open) return;
  if (const Result<void> opened = open_in_browser(response->url_once()); !opened) {
    fail(context, opened.error());
  }
}

}  // namespace

void add_web(CLI::App& app, Context& context) {
  CLI::App* web =
      app.add_subcommand("web", "Print the address of kymod's page, including the token");
  auto open = std::make_shared<bool>(false);
  web->fallthrough();
  web->add_flag("--open", *open, "Open the page in a browser");
  web->add_flag("--json", context.json, "Print JSON");
  web->callback([&context, open] { show_web(context, *open); });
}

}  // namespace kymo::cli
