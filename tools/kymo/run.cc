#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "print.h"
#include "report/api_json.h"
#include "runtimes/table.h"
#include "target.h"
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
                      "Name of the job (default: made from the command's name)");
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

void add_bundle(CLI::App& run, Context& context, const TargetKind& kind) {
  CLI::App* one = run.add_subcommand(kind.name, "Start a " + kind.name + " container as a job");
  one->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  one->add_option("-b,--bundle", flags->bundle, "Bundle of the container")->required();
  one->add_option("--id", flags->id, "Id of the container")->required();
  one->add_option("-n,--name", flags->name, "Name of the job (default: the id)");
  one->add_flag("--json", context.json, "Print JSON");
  one->callback([&context, flags, &kind] {
    v1::RunRequest request;
    request.set_runtime(kind.runtime);
    request.set_name(flags->name);
    request.set_container(flags->id);
    request.set_bundle(std::filesystem::absolute(flags->bundle).lexically_normal().string());
    start(context, std::move(request));
  });
}

void add_image(CLI::App& run, Context& context, const TargetKind& kind,
               std::string_view arguments) {
  CLI::App* one = run.add_subcommand(kind.name, "Start a " + kind.name + " container as a job");
  one->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  one->add_option("-n,--name", flags->name, "The name of the container and of its job")->required();
  one->add_flag("--json", context.json, "Print JSON");
  one->add_option("arguments", flags->command, "After --: " + std::string(arguments))->required();
  one->callback([&context, flags, &kind] {
    v1::RunRequest request;
    request.set_runtime(kind.runtime);
    request.set_name(flags->name);
    for (const std::string& word : flags->command) request.add_command(word);
    start(context, std::move(request));
  });
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* run = app.add_subcommand("run", "Start a process or container as a job");
  run->require_subcommand(1);
  run->fallthrough();
  add_quiet_option(*run, context);
  for (const TargetKind& kind : target_kinds()) {
    if (kind.runtime == v1::PROCESS) {
      add_process(*run, context);
      continue;
    }
    const runtime::RuntimeRow& row = runtime::row_of(runtime::kind_named(kind.name).value());
    if (row.has_bundles) {
      add_bundle(*run, context, kind);
    } else {
      add_image(*run, context, kind, row.run_arguments);
    }
  }
}

}  // namespace kymo::cli
