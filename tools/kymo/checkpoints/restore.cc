#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint_named.h"
#include "checkpoints/checkpoint_options.h"
#include "client/client.h"
#include "interrupt.h"
#include "jobs/progress.h"
#include "lens/report/human.h"
#include "messages.h"
#include "print.h"
#include "recordings/recordings.h"
#include "target.h"
#include "time_option.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

void print(const v1::RestoreResponse& response, bool verbose) {
  std::cout << "restored " << subject(response);
  if (!response.job().empty()) std::cout << " (job " << response.job() << ")";
  std::cout << " in " << duration_text(response, verbose) << '\n';
  print_verdict(response, verbose);
  std::vector<std::vector<std::string>> rows{{"  directory", response.directory()}};
  if (verbose && !response.recording().empty()) {
    rows.push_back({"  recording", response.recording()});
  }
  if (response.away_ns() != 0) {
    rows.push_back(
        {"  away for", report::duration(response.away_ns()) + ", since its dump stopped it"});
  }
  if (!verbose && !response.recording().empty()) {
    rows.push_back({"  to see more", "kymo explain " + response.recording() +
                                         "; kymo restore -v shows the time of each step, too"});
  }
  print_table(rows);
  if (verbose && response.has_stats()) {
    std::cout << "CRIU's statistics\n";
    print_table(rows_of(response.stats()));
  }
}

void restore(Context& context, v1::RestoreRequest request, const std::string& target,
             bool print_stats) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  std::error_code unknown;
  const bool is_name = target.find('/') == std::string::npos;
  // If kymod knew the name, this would be the directory of a checkpoint.
  const bool unknown_to_kymod = request.directory() == absolute_path(target);
  if (is_name && unknown_to_kymod && !std::filesystem::exists(request.directory(), unknown) &&
      !unknown) {
    return fail(context,
                Error{Code::not_found, "restore " + target +
                                           ": there is no job, checkpoint or folder of that "
                                           "name: kymo checkpoints lists the checkpoints"});
  }
  client::Client::Timing timing;
  v1::Failure failure;
  request.set_request_id(new_request_id());
  auto bar = show_progress(context, *client, request);
  auto interrupt = std::make_unique<CancelOnInterrupt>(*client, request.request_id());
  const Result<v1::RestoreResponse> response = client->restore(request, &timing, &failure);
  const bool interrupted = interrupt->asked();
  interrupt.reset();
  bar.reset();
  show_outcome(context, response, timing, failure, target, print_stats,
               [&](const v1::RestoreResponse& done) { print(done, context.verbose); });
  if (response) wait_if_asked(context, response->recording());
  if (!response && interrupted) context.exit_code = kInterrupted;
}

struct RestoreFlags {
  v1::RestoreRequest request;
  std::string directory;
  std::string bundle;
  std::string id;
  std::string root;
  bool print_stats = false;
};

void add_flags(CLI::App& verb, Context& context, RestoreFlags& flags) {
  verb.add_option("directory", flags.directory,
                  "Directory or id of a checkpoint, a job (its last checkpoint), or a directory of "
                  "CRIU images")
      ->option_text("DIR");
  verb.add_option("-b,--bundle", flags.bundle,
                  "Bundle for a runc container (default: the same as before)");
  verb.add_option("--id", flags.id, "Id for a runc container (default: the same as before)");
  add_checkpoint_options(verb, *flags.request.mutable_options());
  add_restore_only_options(verb, *flags.request.mutable_options());
  verb.add_option_function<std::string>(
          "--deadline",
          [&flags](const std::string& text) {
            flags.request.set_deadline_ns(static_cast<std::uint64_t>(
                nanoseconds_of("--deadline", text, "leave out --deadline for no deadline")));
          },
          "Cancel the restore if it takes longer than this, such as 30s; no restored process "
          "is left then")
      ->option_text("TIME (ms, s, m, h)");
  verb.add_option("--root", flags.root,
                  "Mount point that becomes the root of a process that had its own mount namespace")
      ->option_text("DIR");
  verb.add_flag("--print-stats", flags.print_stats,
                "Print only the statistics, in the format of podman's --print-stats");
  verb.add_flag("--json", context.json, "Print JSON");
  add_verbose_option(verb, context);
  add_progress_option(verb, context);
  add_recording_option(verb, context);
}

void restore(Context& context, RestoreFlags& flags, v1::Runtime runtime) {
  if (flags.directory.empty()) throw CLI::RequiredError("directory");
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  flags.request.set_directory(absolute(checkpoint_named(context, flags.directory)));
  flags.request.set_bundle(absolute(flags.bundle));
  flags.request.set_container(flags.id);
  flags.request.mutable_options()->set_root(absolute(flags.root));
  flags.request.set_runtime(runtime);
  restore(context, flags.request, flags.directory, flags.print_stats);
}

// Adds `restore KIND`. `restore` without a kind works, too: a checkpoint says what it is of, and
// images without checkpoint.json are of a process.
void add_kind(CLI::App& verb, Context& context, const std::shared_ptr<RestoreFlags>& flags,
              const TargetKind& kind) {
  CLI::App* one = verb.add_subcommand(kind.name, kind.what);
  one->fallthrough();
  add_flags(*one, context, *flags);
  if (kind.runtime != v1::PROCESS) hide_options_of_processes(*one);
  one->callback([&context, flags, &kind] { restore(context, *flags, kind.runtime); });
}

}  // namespace

void add_restore(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("restore", "Restore the processes or the container of a checkpoint");
  verb->fallthrough();
  verb->require_subcommand(0, 1);
  auto flags = std::make_shared<RestoreFlags>();
  add_flags(*verb, context, *flags);
  for (const TargetKind& kind : target_kinds()) add_kind(*verb, context, flags, kind);
  verb->callback([&context, flags, verb] {
    if (verb->get_subcommands().empty()) restore(context, *flags, v1::RUNTIME_UNSPECIFIED);
  });
}

}  // namespace kymo::cli
