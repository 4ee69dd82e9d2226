#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/table.h"
#include "client/client.h"
#include "lens/report/api_json.h"
#include "print.h"
#include "target.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void start(Context& context, const v1::RunRequest& request) {
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
  show_timing(context, timing, response ? ShowTiming::of_success : ShowTiming::of_failure);
}

struct RunFlags {
  std::string name;
  std::vector<std::string> variables;  // NAME=VALUE
  std::string directory;
  std::string bundle;
  std::string id;
  std::vector<std::string> command;
};

std::string_view name_of_variable(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The environment of this program, with these variables instead of its own ones of these names.
void add_environment(v1::RunRequest& request, const std::vector<std::string>& variables) {
  const auto is_given = [&](std::string_view name) {
    return std::any_of(variables.begin(), variables.end(), [&](const std::string& variable) {
      return name_of_variable(variable) == name;
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_given(name_of_variable(*variable))) request.add_environment(*variable);
  }
  for (auto variable = variables.begin(); variable != variables.end(); ++variable) {
    const bool again = std::any_of(variable + 1, variables.end(), [&](const std::string& later) {
      return name_of_variable(later) == name_of_variable(*variable);
    });
    if (!again) request.add_environment(*variable);
  }
}

void add_process(CLI::App& run, Context& context) {
  CLI::App* process = run.add_subcommand(
      "process",
      "Start a command as a job that outlives the daemon. It runs as the user of kymod (root), "
      "with the environment of kymo and in its working directory (docs/jobs.md)");
  process->fallthrough();
  auto flags = std::make_shared<RunFlags>();
  process->add_option("-n,--name", flags->name,
                      "Name of the job (default: made from the command's name)");
  process
      ->add_option("-e,--env", flags->variables,
                   "A variable for the command, instead of the one of that name in the environment "
                   "of kymo (may be repeated)")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const std::size_t end = text.find('=');
        return end == 0 || end == std::string::npos ? "give NAME=VALUE, not '" + text + "'"
                                                    : std::string();
      });
  process
      ->add_option("-w,--workdir", flags->directory,
                   "Working directory of the command (default: that of kymo)")
      ->option_text("DIR");
  // Not in the help: another program does this already, and this says which.
  process
      ->add_option_function<std::string>(
          "-u,--user,--uid",
          [](const std::string& user) {
            throw CLI::ValidationError(
                "--user",
                "the command runs as the user of kymod; for another one type: -- setpriv --reuid=" +
                    user + " --regid=" + user +
                    " --init-groups COMMAND ...; if this is an option of the command, put -- "
                    "before the command");
          })
      ->group("");
  process->add_flag("--json", context.json, "Print JSON");
  process->add_option("command", flags->command, "After --: the command and its arguments")
      ->required();
  process->callback([&context, flags] {
    v1::RunRequest request;
    request.set_name(flags->name);
    for (const std::string& word : flags->command) request.add_command(word);
    std::error_code error;
    std::filesystem::path folder = std::filesystem::current_path(error);
    if (!flags->directory.empty()) folder = (folder / flags->directory).lexically_normal();
    request.set_directory(folder.string());
    add_environment(request, flags->variables);
    start(context, request);
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
    start(context, request);
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
    start(context, request);
  });
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* run =
      app.add_subcommand("run", "Start a command or a container as a job: kymo run -- COMMAND");
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
