#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "print.h"
#include "report/api_json.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void start(Context& context, v1::RunRequest request) {
  std::error_code error;
  if (request.runtime() == v1::RUNTIME_UNSPECIFIED) {
    request.set_directory(std::filesystem::current_path(error).string());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      request.add_environment(*variable);
    }
  }
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  client::Client::Timing timing;
  const Result<v1::RunResponse> response = client->run(request, &timing);
  if (!response) {
    fail(context, response.error());
  } else if (context.quiet) {
    return;
  } else if (context.json) {
    print_json(report::to_json(response->job()));
  } else {
    const v1::Job& job = response->job();
    std::cout << "started job " << job.name() << ", pid " << job.pid() << '\n';
    if (!job.stdout_path().empty()) {
      print_table({{"  stdout", job.stdout_path()}, {"  stderr", job.stderr_path()}});
    }
  }
  show_timing(context, timing, ShowTiming::if_detailed);
}

struct RunFlags {
  std::string name;
  std::string bundle;
  std::string id;
  std::vector<std::string> command;
};

void add_process(CLI::App& run, Context& context) {
  CLI::App* process =
      run.add_subcommand("process", "Start a command as a job that outlives the daemon");
  process->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  process->add_option("-n,--name", flags->name,
                      "The job's name; without it made from the command's");
  process->add_flag("--json", context.json, "Print JSON");
  process->add_option("command", flags->command, "After --: the command and its arguments")
      ->required();
  process->callback([&context, flags] {
    v1::RunRequest request;
    request.set_name(flags->name);
    for (const std::string& word : flags->command) request.add_command(word);
    start(context, std::move(request));
  });
}

void add_runc(CLI::App& run, Context& context) {
  CLI::App* runc = run.add_subcommand("runc", "Start a runc container as a job");
  runc->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  runc->add_option("-b,--bundle", flags->bundle, "The container's bundle")->required();
  runc->add_option("--id", flags->id, "The container's id")->required();
  runc->add_option("-n,--name", flags->name, "The job's name; without it the id");
  runc->add_flag("--json", context.json, "Print JSON");
  runc->callback([&context, flags] {
    v1::RunRequest request;
    request.set_runtime(v1::RUNC);
    request.set_name(flags->name);
    request.set_container(flags->id);
    request.set_bundle(std::filesystem::absolute(flags->bundle).lexically_normal().string());
    start(context, std::move(request));
  });
}

void add_podman(CLI::App& run, Context& context) {
  CLI::App* podman = run.add_subcommand("podman", "Start a podman container as a job");
  podman->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  podman->add_option("-n,--name", flags->name, "The name of the container and of its job")
      ->required();
  podman->add_flag("--json", context.json, "Print JSON");
  podman->add_option("arguments", flags->command, "After --: what follows podman run -d")
      ->required();
  podman->callback([&context, flags] {
    v1::RunRequest request;
    request.set_runtime(v1::PODMAN);
    request.set_name(flags->name);
    for (const std::string& word : flags->command) request.add_command(word);
    start(context, std::move(request));
  });
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* run = app.add_subcommand("run", "Start something that can be checkpointed");
  run->require_subcommand(1);
  run->fallthrough();
  add_quiet_option(*run, context);
  add_process(*run, context);
  add_runc(*run, context);
  add_podman(*run, context);
}

}  // namespace kymo::cli
