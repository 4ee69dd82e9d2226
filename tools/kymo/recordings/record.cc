#include "recorder/programs/record.h"

#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "checkpoint/inside/latest.h"
#include "lens/analysis/summary.h"
#include "lens/report/json_report.h"
#include "lens/report/text_report.h"
#include "print.h"
#include "recordings/truncated.h"
#include "seconds_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr double kMaxSeconds = 1e9;

struct RecordArguments {
  std::vector<std::string> command;
  int pid = 0;
  std::string counters;
  std::string output;
  long long rate_us = 1000;
  bool no_realtime = false;
  bool bpf = false;
  double duration_s = 0;
};

// A temporary folder for the recording, if the user wants only the report.
class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "kymo-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void refuse(Context& context, const std::string& why) {
  say(why + " (see kymo record --help)");
  context.exit_code = kWrongUsage;
}

// Prints on stderr, because stdout belongs to the command.
void print_report(const std::string& recording, bool kept, Context& context) {
  Result<analysis::Summary> summary = analysis::summarize(recording);
  if (!summary) return fail(context, summary.error());
  if (!kept) summary->recording.path = "(not kept: name a file with --output)";
  const std::string text = context.json ? json_text(report::json_report({*summary}), 2) + "\n"
                                        : "\n" + report::text_report(*summary);
  std::fputs(text.c_str(), stderr);
}

Result<record::Outcome> record_target(const RecordArguments& arguments, record::Options options) {
  if (arguments.pid == 0) return record::record_command(arguments.command, options);
  record::ProcessOptions process;
  process.recording = std::move(options);
  process.pid = arguments.pid;
  process.counters = arguments.counters;
  if (arguments.duration_s > 0) {
    process.duration = std::chrono::milliseconds(std::llround(arguments.duration_s * 1000));
  }
  std::unique_ptr<inside::Latest> seen;  // also read at the end of the recording
  process.more = [&](Registry& registry) {
    auto sources = inside::sources_of_process(arguments.pid);
    if (arguments.bpf) {
      Result<std::unique_ptr<inside::Source>> more = bpf_source_of(arguments.pid);
      if (!more) return Result<void>(more.error());
      sources.push_back(*std::move(more));
    }
    seen = std::make_unique<inside::Latest>(std::move(sources), process.recording.interval);
    return seen->add_to(registry);
  };
  return record::record_process(process);
}

void record_and_report(const RecordArguments& arguments, Context& context) {
  if (arguments.command.empty() == (arguments.pid == 0)) {
    return refuse(context, "record: name a process with -p, or a command after --");
  }
  if (arguments.pid == 0 &&
      (!arguments.counters.empty() || arguments.duration_s != 0 || arguments.bpf)) {
    return refuse(context, "record: use --counters, --duration and --bpf only with -p");
  }
  const ScratchFolder scratch;
  const bool kept = !arguments.output.empty();
  if (!kept && scratch.path().empty()) {
    return fail(context, system_error("cannot make a temporary folder", errno));
  }
  const record::Options options{kept ? arguments.output : scratch.path() + "/run.tsv",
                                std::chrono::microseconds(arguments.rate_us),
                                !arguments.no_realtime};
  end_where_truncated(
      "the counter file was truncated while it was read; the rows until then are in " +
      options.output);
  const Result<record::Outcome> outcome = record_target(arguments, options);
  if (!outcome) {
    fail(context, outcome.error());
    if (outcome.error().code == Code::invalid_argument) context.exit_code = kWrongUsage;
    if (arguments.pid == 0 && outcome.error().message.starts_with("cannot run ")) {
      context.exit_code = outcome.error().errno_value == ENOENT ? kNotFound : kCannotRun;
    }
    return;
  }
  if (!context.quiet) print_report(options.output, kept, context);
  for (const std::string& note : outcome->notes) {
    say(note);
  }
  if (outcome->exit_code != 0) context.exit_code = outcome->exit_code;
}

}  // namespace

void add_record(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* verb = app.add_subcommand(
      "record", "Run and record a command, or record a running process, and print a report");
  verb->fallthrough();
  verb->add_option("-p,--pid", arguments->pid,
                   "PID of a running process, to record until it ends or until Ctrl-C")
      ->check(CLI::Range(1, 1 << 22));
  verb->add_option("--counters", arguments->counters,
                   "Counter file of the process, if kymo does not find it");
  verb->add_option("--rate-us", arguments->rate_us, "Interval between samples, in microseconds")
      ->check(CLI::Range(1LL, 86'400'000'000LL))
      ->capture_default_str();
  verb->add_flag(
      "--no-realtime", arguments->no_realtime,
      "Give the collector no real-time priority; samples may then be late on a busy machine");
  verb->add_option("-d,--duration", arguments->duration_s,
                   "Stop recording a process (-p) after this time: 30s, 500ms, 5m, or a number of "
                   "seconds")
      ->transform(seconds_text())
      ->check(CLI::Range(0.001, kMaxSeconds))
      ->option_text("TIME");
  verb->add_flag(
      "--bpf", arguments->bpf,
      "With -p, also count system calls and exact times in the kernel; each system call of "
      "the process then takes about 0.2 us longer");
  verb->add_option("-o,--output", arguments->output, "Keep the recording in this .tsv file");
  add_quiet_option(*verb, context);
  verb->add_flag("--json", context.json, "Print the report as JSON");
  verb->add_option("command", arguments->command, "After --: the command and its arguments");
  verb->callback([arguments, &context] { record_and_report(*arguments, context); });
}

}  // namespace kymo::cli
