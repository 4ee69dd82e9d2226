#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void release(Context& context, const std::string& name) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::ReleaseResponse> response = client->release(name);
  if (!response) return fail(context, response.error());
  const v1::Job& job = response->job();
  if (context.quiet) return;
  if (context.json) return print_json(report::to_json(job));
  std::cout << "pid " << job.pid() << " is no longer a job; it runs on";
  if (!job.stdout_path().empty()) std::cout << ", its output goes to " << job.stdout_path();
  std::cout << '\n';
}

}  // namespace

void add_release(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("release", "Forget a running job; its process or container runs on");
  auto job = std::make_shared<std::string>();
  verb->fallthrough();
  verb->add_option("job", *job, "Name or id of the job")->required();
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, job] { release(context, *job); });
}

}  // namespace kymo::cli
