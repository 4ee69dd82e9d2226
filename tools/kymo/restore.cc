#include <filesystem>
#include <iostream>
#include <memory>

#include "client/client.h"
#include "print.h"
#include "progress.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void print(const v1::RestoreResponse& response) {
  std::cout << "restored pid " << response.pid();
  if (!response.job().empty()) std::cout << " (job " << response.job() << ")";
  std::cout << " in " << duration_text(response.duration_ns()) << '\n';
  std::vector<std::vector<std::string>> rows{{"  directory", response.directory()}};
  if (!response.recording().empty()) rows.push_back({"  recording", response.recording()});
  print_table(rows);
  if (response.has_stats()) {
    std::cout << "CRIU's statistics\n";
    print_table(rows_of(response.stats()));
  }
}

void restore_process(Context& context, v1::RestoreRequest request, const std::string& target,
                     bool print_stats) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  client::Client::Timing timing;
  auto bar = show_progress(context, *client, request);
  const Result<v1::RestoreResponse> response = client->restore(request, &timing);
  bar.reset();
  show_outcome(context, response, timing, target, print_stats,
               [](const v1::RestoreResponse& done) { print(done); });
}

}  // namespace

void add_restore(CLI::App& app, Context& context) {
  CLI::App* restore = app.add_subcommand("restore", "Bring a checkpoint back to life");
  restore->require_subcommand(1);
  restore->fallthrough();
  CLI::App* process = restore->add_subcommand("process", "Restore a process");
  process->fallthrough();
  auto directory = std::make_shared<std::string>();
  process->add_option("directory", *directory, "A checkpoint's directory, or one of CRIU images")
      ->required()
      ->option_text("DIR");
  auto print_stats = std::make_shared<bool>(false);
  process->add_flag("--print-stats", *print_stats,
                    "Print the statistics alone, as podman's --print-stats does");
  process->add_flag("--json", context.json, "Print JSON");
  add_progress_option(*process, context);
  process->callback([&context, directory, print_stats] {
    v1::RestoreRequest request;
    request.set_directory(std::filesystem::absolute(*directory).lexically_normal().string());
    restore_process(context, request, *directory, *print_stats);
  });
}

}  // namespace kymo::cli
