#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>

#include "checkpoint_options.h"
#include "client/client.h"
#include "print.h"
#include "progress.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void print(const v1::DumpResponse& response, bool left_running) {
  std::cout << "dumped " << subject(response);
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

void dump(Context& context, v1::DumpRequest request, const std::string& target, bool print_stats) {
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

// What every kind is dumped with.
struct DumpFlags {
  std::string target;
  std::string directory;
  bool leave_running = false;
  bool print_stats = false;
  v1::CheckpointOptions options;
};

// `set_target` puts the target's name into the request.
void add_kind(CLI::App& dump_verb, Context& context, const std::string& kind,
              const std::string& what, const std::string& shown,
              void (*set_target)(v1::DumpRequest&, const std::string&)) {
  CLI::App* verb = dump_verb.add_subcommand(kind, "Checkpoint a " + what);
  verb->fallthrough();
  auto flags = std::make_shared<DumpFlags>();
  verb->add_option("target", flags->target, "The " + what + ": " + shown)
      ->required()
      ->option_text(shown);
  verb->add_option("--dir", flags->directory,
                   "Where the checkpoint goes: a new or an empty directory");
  verb->add_flag("--leave-running", flags->leave_running, "It runs on after the dump");
  add_checkpoint_options(*verb, flags->options);
  verb->add_flag("--print-stats", flags->print_stats,
                 "Print the statistics alone, as podman's --print-stats does");
  verb->add_flag("--json", context.json, "Print JSON");
  add_progress_option(*verb, context);
  verb->callback([&context, flags, set_target] {
    v1::DumpRequest request;
    set_target(request, flags->target);
    if (!flags->directory.empty()) {
      request.set_directory(
          std::filesystem::absolute(flags->directory).lexically_normal().string());
    }
    request.set_leave_running(flags->leave_running);
    *request.mutable_options() = flags->options;
    dump(context, request, flags->target, flags->print_stats);
  });
}

}  // namespace

void add_dump(CLI::App& app, Context& context) {
  CLI::App* dump_verb = app.add_subcommand("dump", "Checkpoint something");
  dump_verb->require_subcommand(1);
  dump_verb->fallthrough();
  add_kind(*dump_verb, context, "process", "process", "PID|JOB", set_target);
  add_kind(*dump_verb, context, "runc", "runc container", "ID",
           [](v1::DumpRequest& request, const std::string& id) { request.set_runc(id); });
  add_kind(*dump_verb, context, "podman", "podman container", "NAME|ID",
           [](v1::DumpRequest& request, const std::string& name) { request.set_podman(name); });
}

}  // namespace kymo::cli
