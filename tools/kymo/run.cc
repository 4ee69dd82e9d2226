#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "client/client.h"
#include "print.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void run_process(Context& context, v1::RunRequest request) {
  std::error_code error;
  request.set_directory(std::filesystem::current_path(error).string());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    request.add_environment(*variable);
  }
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  client::Client::Timing timing;
  const Result<v1::RunResponse> response = client->run(request, &timing);
  if (!response) {
    fail(context, response.error());
  } else if (context.json) {
    print_json(to_json(response->job()));
  } else {
    const v1::Job& job = response->job();
    std::cout << "started job " << job.name() << ", pid " << job.pid() << '\n';
    print_table({{"  stdout", job.stdout_path()}, {"  stderr", job.stderr_path()}});
  }
  show_timing(context, timing, ShowTiming::if_detailed);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* run = app.add_subcommand("run", "Start something that can be checkpointed");
  run->require_subcommand(1);
  run->fallthrough();
  CLI::App* process =
      run->add_subcommand("process", "Start a command as a job that outlives the daemon");
  process->fallthrough();
  auto name = std::make_shared<std::string>();
  auto command = std::make_shared<std::vector<std::string>>();
  process->add_option("--name", *name, "The job's name; without it made from the command's");
  process->add_flag("--json", context.json, "Print JSON");
  process->add_option("command", *command, "After --: the command and its arguments")->required();
  process->callback([&context, name, command] {
    v1::RunRequest request;
    request.set_name(*name);
    for (const std::string& word : *command) request.add_command(word);
    run_process(context, std::move(request));
  });
}

}  // namespace kymo::cli
