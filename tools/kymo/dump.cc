#include <algorithm>
#include <charconv>
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

void print(const v1::DumpResponse& response, bool left_running) {
  std::cout << "dumped pid " << response.pid();
  if (!response.job().empty()) std::cout << " (job " << response.job() << ")";
  std::cout << " in " << duration_text(response.duration_ns())
            << (left_running ? "; it runs on\n" : "\n");
  std::vector<std::vector<std::string>> rows{{"  directory", response.directory()},
                                             {"  images", bytes_text(response.image_bytes())}};
  if (!response.recording().empty()) rows.push_back({"  recording", response.recording()});
  print_table(rows);
  if (response.has_stats()) {
    std::cout << "CRIU's statistics\n";
    print_table(rows_of(response.stats()));
  }
}

void dump_process(Context& context, v1::DumpRequest request, const std::string& target,
                  bool print_stats) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  client::Client::Timing timing;
  auto bar = show_progress(context, *client, request);
  const Result<v1::DumpResponse> response = client->dump(request, &timing);
  bar.reset();
  show_outcome(context, response, timing, target, print_stats,
               [&](const v1::DumpResponse& done) { print(done, request.leave_running()); });
}

// Digits alone are a pid: job names are never that.
void set_target(v1::DumpRequest& request, const std::string& target) {
  std::int32_t pid = 0;
  const char* end = target.data() + target.size();
  if (const auto parsed = std::from_chars(target.data(), end, pid);
      parsed.ec == std::errc() && parsed.ptr == end) {
    request.set_pid(pid);
  } else {
    request.set_job(target);
  }
}

}  // namespace

void add_dump(CLI::App& app, Context& context) {
  CLI::App* dump = app.add_subcommand("dump", "Checkpoint something");
  dump->require_subcommand(1);
  dump->fallthrough();
  CLI::App* process = dump->add_subcommand("process", "Checkpoint a process");
  process->fallthrough();
  auto target = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>();
  auto leave_running = std::make_shared<bool>(false);
  process->add_option("target", *target, "The process: its PID, or a JOB's name or id")
      ->required()
      ->option_text("PID|JOB");
  process->add_option("--dir", *directory,
                      "Where the checkpoint goes: a new or an empty directory");
  process->add_flag("--leave-running", *leave_running, "The process runs on after the dump");
  auto print_stats = std::make_shared<bool>(false);
  process->add_flag("--print-stats", *print_stats,
                    "Print the statistics alone, as podman's --print-stats does");
  process->add_flag("--json", context.json, "Print JSON");
  add_progress_option(*process, context);
  process->callback([&context, target, directory, leave_running, print_stats] {
    v1::DumpRequest request;
    set_target(request, *target);
    if (!directory->empty()) {
      request.set_directory(std::filesystem::absolute(*directory).lexically_normal().string());
    }
    request.set_leave_running(*leave_running);
    dump_process(context, request, *target, *print_stats);
  });
}

}  // namespace kymo::cli
