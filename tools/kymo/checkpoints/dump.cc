#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoints/check_target.h"
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

std::string images_text(const v1::DumpResponse& response) {
  std::string stored = bytes_text(response.image_bytes());
  if (response.streamed_bytes() <= response.image_bytes()) return stored;
  return stored + ", " + bytes_text(response.streamed_bytes()) + " before compression";
}

// Shows how many pages each pre-dump and the dump itself wrote.
void print_pre_dumps(const v1::DumpResponse& response) {
  if (response.pre_dumps().empty()) return;
  std::vector<std::vector<std::string>> rows{{"  round", "pages written", "took", "frozen"}};
  int number = 0;
  for (const v1::PreDump& round : response.pre_dumps()) {
    rows.push_back({"  pre-dump " + std::to_string(++number),
                    report::with_commas(round.pages_written()),
                    report::duration(round.duration_ns()),
                    report::duration(std::uint64_t{round.frozen_time_us()} * 1000)});
  }
  if (response.has_stats()) {
    const v1::DumpStats& stats = response.stats();
    rows.push_back({"  dump", report::with_commas(stats.pages_written() + stats.shpages_written()),
                    report::duration(response.criu_time_ns()),
                    report::duration(std::uint64_t{stats.frozen_time_us()} * 1000)});
  }
  std::cout << "Pre-dump\n";
  print_table(rows);
}

void print(const v1::DumpResponse& response, const v1::DumpRequest& request, bool verbose) {
  const bool left_running = request.leave_running();
  std::cout << "dumped " << subject(response);
  if (!response.job().empty()) std::cout << " (job " << response.job() << ")";
  std::cout << " in " << duration_text(response, verbose) << "; it ";
  if (response.stood_still_ns() != 0 && !response.stays_frozen()) {
    std::cout << "stood still for " << report::duration(response.stood_still_ns()) << " and ";
  }
  std::cout << (response.stays_frozen() ? "was frozen before, and stays so\n"
                : left_running          ? "runs on\n"
                                        : "has ended\n");
  print_verdict(response, verbose);
  std::vector<std::vector<std::string>> rows{{"  directory", response.directory()},
                                             {"  images", images_text(response)}};
  if (verbose && !response.recording().empty()) {
    rows.push_back({"  recording", response.recording()});
  }
  if (request.prove()) rows.push_back({"  rehearsed", "its restore, before it went on"});
  if (!left_running) rows.push_back({"  to bring it back", "kymo restore " + response.directory()});
  if (!verbose) {
    rows.push_back({"  to see more", "kymo explain " + response.directory() +
                                         "; kymo dump -v shows the time of each step, too"});
  }
  print_table(rows);
  if (!verbose) return;
  print_pre_dumps(response);
  if (response.has_stats()) {
    std::cout << "CRIU's statistics\n";
    print_table(rows_of(response.stats()));
  }
}

void dump(Context& context, v1::DumpRequest request, const std::string& target, bool print_stats) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  client::Client::Timing timing;
  v1::Failure failure;
  request.set_request_id(new_request_id());
  auto bar = show_progress(context, *client, request, request.deadline_ns() != 0);
  auto interrupt = std::make_unique<CancelOnInterrupt>(*client, request.request_id());
  const Result<v1::DumpResponse> response = client->dump(request, &timing, &failure);
  const bool interrupted = interrupt->asked();
  interrupt.reset();
  bar.reset();
  show_outcome(context, response, timing, failure, target, print_stats,
               [&](const v1::DumpResponse& done) { print(done, request, context.verbose); });
  if (response) wait_if_asked(context, response->recording());
  if (!response && interrupted) context.exit_code = kInterrupted;
}

// The options for streaming, the deadline and the pre-dumps.
struct StreamArguments {
  bool stream = false;
  bool no_stream = false;
  std::string compression = "none";
  int level = 0;
  double deadline_ns = 0;
  std::uint32_t pre_dumps = 0;
};

std::shared_ptr<StreamArguments> add_stream_options(CLI::App& verb) {
  auto arguments = std::make_shared<StreamArguments>();
  CLI::Option* stream = verb.add_flag("--stream", arguments->stream,
                                      "Send the images through kymod, which can compress them "
                                      "(default for processes, without --pre-dump)");
  CLI::Option* no_stream =
      verb.add_flag("--no-stream", arguments->no_stream,
                    "Let CRIU write the images itself; if their disk stalls, CRIU cannot be ended")
          ->excludes(stream);
  verb.add_option("--compression", arguments->compression,
                  "Compress the images with this method; kymod then streams them")
      ->check(CLI::IsMember({"none", "zstd", "lz4"}))
      ->excludes(no_stream)
      ->capture_default_str();
  verb.add_option("--compression-level", arguments->level,
                  "Compression level, 1 (fastest) to 19 (zstd) or 12 (lz4)")
      ->check(CLI::Range(1, 19))
      ->excludes(no_stream)
      ->default_str("1");
  verb.add_option_function<std::string>(
          "--deadline",
          [arguments](const std::string& text) {
            arguments->deadline_ns =
                nanoseconds_of("--deadline", text, "leave out --deadline for no deadline");
          },
          "Cancel the dump if it takes longer than this, such as 30s; the process then runs on")
      ->option_text("TIME (ms, s, m, h)");
  verb.add_option("--pre-dump", arguments->pre_dumps,
                  "Write memory before the dump, while the process runs, in at most this many "
                  "rounds (1 to 32), so that it is frozen for less time")
      ->check(CLI::Range(1, 32))
      ->option_text("ROUNDS");
  return arguments;
}

void set_stream(v1::DumpRequest& request, const StreamArguments& arguments) {
  request.set_stream(arguments.stream);
  request.set_no_stream(arguments.no_stream);
  request.set_compression(arguments.compression == "zstd"  ? v1::ZSTD
                          : arguments.compression == "lz4" ? v1::LZ4
                                                           : v1::NONE);
  request.set_compression_level(arguments.level);
  request.set_pre_dumps(arguments.pre_dumps);
  request.set_deadline_ns(static_cast<std::uint64_t>(arguments.deadline_ns));
}

void set_target(v1::DumpRequest& request, const v1::Target& target) {
  if (target.has_pid()) request.set_pid(target.pid());
  if (target.has_job()) request.set_job(target.job());
  if (target.has_container()) *request.mutable_container() = target.container();
}

// The flags of a dump of any kind of target.
struct DumpFlags {
  std::string target;
  std::string directory;
  bool leave_running = false;
  bool sync = false;
  bool checksums = false;
  bool prove = false;
  bool print_stats = false;
  bool dry_run = false;
  bool force = false;
  v1::CheckpointOptions options;
};

void add_kind(CLI::App& dump_verb, Context& context, const TargetKind& kind) {
  CLI::App* verb = dump_verb.add_subcommand(kind.name, kind.what);
  verb->fallthrough();
  auto flags = std::make_shared<DumpFlags>();
  verb->add_option("target", flags->target, kind.help)->required()->option_text(kind.shown);
  verb->add_option(
      "-d,--dir", flags->directory,
      "Directory for the checkpoint, new or empty (default: a new one in kymod's state directory)");
  verb->add_flag("-R,--leave-running", flags->leave_running,
                 "Let the process run on (default: it ends when the dump is done)");
  verb->add_flag("--sync", flags->sync,
                 "Sync the images to their disk before the process ends, so that they survive a "
                 "power failure; if that fails, the process runs on");
  verb->add_flag("--checksums", flags->checksums,
                 "Write checksums of the memory pages, too (of all other images they are always "
                 "written); each restore and kymo verify compare them");
  verb->add_flag(
      "--prove", flags->prove,
      "Rehearse the restore before the process ends; if that fails, the process runs on");
  add_checkpoint_options(*verb, flags->options);
  add_dump_only_options(*verb, flags->options);
  verb->add_flag("--print-stats", flags->print_stats,
                 "Print only the statistics, in the format of podman's --print-stats");
  CLI::Option* dry_run =
      verb->add_flag("--dry-run", flags->dry_run,
                     "Dump nothing: list what would make the dump fail, as kymo check does");
  verb->add_flag("-f,--force", flags->force,
                 "Try the dump even if kymo check says that it is sure to fail, and end processes "
                 "that docker exec has started in a container, which no images have")
      ->excludes(dry_run);
  verb->add_flag("--json", context.json, "Print JSON");
  add_verbose_option(*verb, context);
  add_progress_option(*verb, context);
  add_recording_option(*verb, context);
  const auto streaming = add_stream_options(*verb);
  if (kind.runtime != v1::PROCESS) hide_options_of_processes(*verb);
  verb->callback([&context, flags, &kind, streaming] {
    v1::DumpRequest request;
    set_target(request, target_of(kind, flags->target));
    if (!flags->directory.empty()) {
      request.set_directory(
          std::filesystem::absolute(flags->directory).lexically_normal().string());
    }
    request.set_leave_running(flags->leave_running);
    request.set_sync(flags->sync);
    request.set_checksums(flags->checksums);
    request.set_force(flags->force);
    request.set_prove(flags->prove);
    set_stream(request, *streaming);
    *request.mutable_options() = flags->options;
    if (flags->dry_run) {
      v1::CheckRequest planned;
      *planned.mutable_target() = target_of(kind, flags->target);
      *planned.mutable_options() = flags->options;
      planned.set_directory(request.directory());
      planned.set_compression(request.compression());
      planned.set_leave_running(request.leave_running());
      return check_target(context, planned);
    }
    dump(context, request, flags->target, flags->print_stats);
  });
}

}  // namespace

void add_dump(CLI::App& app, Context& context) {
  CLI::App* dump_verb = app.add_subcommand(
      "dump", "Write a process or container to a checkpoint, and end it unless --leave-running");
  dump_verb->require_subcommand(1);
  dump_verb->fallthrough();
  for (const TargetKind& kind : target_kinds()) add_kind(*dump_verb, context, kind);
}

}  // namespace kymo::cli
