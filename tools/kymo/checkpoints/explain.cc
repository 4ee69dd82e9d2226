#include "checkpoint/failures/explain.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/beneath.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/recording_name.h"
#include "checkpoints/checkpoint_copy.h"
#include "checkpoints/newest_dump.h"
#include "confined.h"
#include "lens/report/explanation.h"
#include "lens/report/history.h"
#include "lens/report/human.h"
#include "lens/report/stack_summary.h"
#include "messages.h"
#include "print.h"
#include "recordings/recordings.h"
#include "refusals.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

// Prints why a request failed, and then where its time went, if that is known. `request`: "dump" or "restore"; empty: it is
// not known.
void print_failure(const Context& context, failures::Explanation why, const std::string& log,
                   const std::string& request = "",
                   const std::optional<report::Explanation>& times = {}) {
  if (context.json) {
    nlohmann::json json = failures::to_json(why);
    if (times) json.update(report::json_of(*times));
    if (!request.empty()) json["request"] = request;
    json["log"] = log;
    return print_json(json);
  }
  for (std::string* text : {&why.what, &why.why, &why.remedy, &why.retry, &why.root, &why.step}) {
    *text = report::printable(*text);
  }
  std::cout << failures::text_of(why, report::printable(log));
  if (times) std::cout << "\n" << report::text_of(*times);
}

void explain_log(Context& context, int fd, const std::string& log) {
  const failures::Root root = failures::read_root(fd);
  if (!root.is_log && root.line.empty()) {
    return fail(context, Error{Code::invalid_argument,
                               "explain " + log +
                                   ": no line of it is of a log of CRIU; give a dump.log or "
                                   "restore.log, or a checkpoint"});
  }
  if (root.finished && !root.failed) {
    if (context.json) return print_json({{"id", nullptr}, {"log", log}});
    std::cout << "CRIU did not fail: " << report::printable(log) << "\n";
    return;
  }
  print_failure(context, failures::explain(root), log);
}

// Archives have zeros or other control characters near their beginning, logs have none.
bool is_text(const std::string& path) {
  const Result<FileDescriptor> file = open_regular(path);
  std::array<char, 512> begin{};
  const ssize_t got = file ? ::pread(file->get(), begin.data(), begin.size(), 0) : -1;
  const std::string_view text(begin.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
  constexpr std::string_view kNone("\0\1\2\3\4\5\6\x0e\x0f", 9);
  return got >= 0 && text.find_first_of(kNone) == std::string_view::npos;
}

// CRIU's log of this name in a checkpoint or a folder of CRIU. Empty if there is none.
std::string log_in(const std::string& folder, const std::string& name) {
  for (const std::string& place : {"work/" + name, name}) {
    const std::filesystem::path log = std::filesystem::path(folder) / place;
    std::error_code error;
    if (std::filesystem::exists(log, error)) return log.string();
  }
  return {};
}

// Prints why the dump of a checkpoint failed: as kymod noted it in checkpoint.json, or else as CRIU's log
// shows it. Returns false if the dump did not fail. `shown`: as in explain_path().
bool explain_failed_dump(const Context& context, const std::string& path,
                         const std::string& shown) {
  const std::string log = log_in(path, "dump.log");
  const Result<std::string> text = read_beneath(path, "checkpoint.json");
  const nlohmann::json record = text ? parse_json(*text) : nlohmann::json();
  if (record.is_object() && record.contains("failure")) {
    print_failure(context, failures::from_json(record.at("failure")), as_in(shown, path, log),
                  "dump", report::explanation_in(record));
    return true;
  }
  const failures::Root root = failures::root_of_log(log);
  if (root.failed) print_failure(context, failures::explain(root), as_in(shown, path, log), "dump");
  return root.failed;
}

// Prints why the last restore of a checkpoint failed, if it did. `shown`: as in explain_path().
bool explain_restore(Context& context, const std::string& path, const std::string& shown) {
  const std::string log = log_in(path, "restore.log");
  const failures::Root root = failures::root_of_log(log);
  if (!root.failed) return false;
  if (!context.json) std::cout << "The last restore of this checkpoint failed. ";
  print_failure(context, failures::explain(root), as_in(shown, path, log), "restore");
  return true;
}

void explain_checkpoint(Context& context, const std::string& path, const std::string& shown) {
  if (explain_failed_dump(context, path, shown) || explain_restore(context, path, shown)) return;
  const auto explanation = report::explain_checkpoint(path);
  if (!explanation) return fail(context, explanation.error());
  std::vector<std::string> notes;
  const std::vector<report::StackSummary> stacks = report::stacks_of_checkpoint(path, notes);
  if (context.json) {
    nlohmann::json json = report::json_of(*explanation);
    json["request"] = "dump";
    json["stacks"] = nlohmann::json::array();
    for (const report::StackSummary& one : stacks) json["stacks"].push_back(report::json_of(one));
    return print_json(json);
  }
  std::cout << report::text_of(*explanation);
  for (const report::StackSummary& one : stacks) std::cout << report::text_of(one);
  for (const std::string& note : notes) say(note);
}

void explain_recording(Context& context, const std::string& path) {
  wait_for_recordings({path});
  const auto explanation = report::explain_recording(path);
  if (!explanation) return fail(context, explanation.error());
  if (context.json) return print_json(report::json_of(*explanation));
  std::cout << report::text_of(*explanation);
}

// Prints why the newest requests for a job were refused. In JSON, only the newest one.
void explain_refusals(const Context& context, const std::vector<Refusal>& refused) {
  for (const Refusal& refusal : refused) {
    if (!context.json) {
      std::cout << "The newest " << refusal.kind << " was refused at "
                << local_time(refusal.run.created_unix_ns()) << ", and nothing was begun. ";
    }
    print_failure(context, explanation_of(refusal.run), "", refusal.kind);
    if (context.json) return;
    std::cout << "\n";
  }
}

// What the history has of a run: the phases by their length. Nothing: kymod stopped in it, or an earlier version ran it.
std::optional<report::Explanation> times_of(const v1::HistoryRun& run) {
  report::Explanation times;
  std::istringstream lines(run.verdict());
  for (std::string line; std::getline(lines, line);) times.lines.push_back(line);
  if (times.lines.empty()) return std::nullopt;
  std::vector<v1::HistoryPhase> phases(run.phases().begin(), run.phases().end());
  std::stable_sort(phases.begin(), phases.end(), [](const auto& one, const auto& other) {
    return one.duration_ns() > other.duration_ns();
  });
  for (const v1::HistoryPhase& phase : phases) {
    if (report::is_state(phase.name())) continue;
    const std::uint64_t begin_ns = times.phases.empty() ? 0 : times.phases.back().end_ns;
    times.phases.push_back({phase.name(), begin_ns, begin_ns + phase.duration_ns(), 0, {}, false});
  }
  return times;
}

void explain_restore_run(const Context& context, const v1::HistoryRun& run) {
  const std::optional<report::Explanation> times = times_of(run);
  const bool failed = !run.error().empty();
  if (!context.json) {
    std::cout << "The newest restore, at " << local_time(run.created_unix_ns())
              << (failed ? ", failed. " : ":\n");
  }
  if (failed) return print_failure(context, explanation_of(run), "", "restore", times);
  if (context.json) {
    nlohmann::json json = times ? report::json_of(*times) : nlohmann::json::object();
    json["request"] = "restore";
    return print_json(json);
  }
  std::cout << (times ? report::text_of(*times) : "  kymod has kept no explanation of it.\n");
}

// `shown`: the path in what is printed, if `path` is a copy of it.
void explain_path(Context& context, const std::string& path, const std::string& shown) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (is_file && is_recording_name(path)) return explain_recording(context, path);
  if (!is_file || !is_text(path)) return explain_checkpoint(context, path, shown);
  const Result<FileDescriptor> log = open_regular(path);
  if (!log) return fail(context, log.error());
  explain_log(context, log->get(), path);
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* explain = app.add_subcommand(
      "explain", "Say why a dump or restore failed, or why a dump took so long, and what to do");
  auto name = std::make_shared<std::string>();
  explain->fallthrough();
  explain
      ->add_option(
          "path", *name,
          "A log of CRIU (- for standard input), a checkpoint of kymod (directory or id, "
          "or a job or RUNTIME:NAME of a container: its newest dump or restore, also one that "
          "failed), the "
          "recording of a dump or restore, CRIU's images or work directory, or an archive that "
          "podman exported")
      ->required();
  explain->add_flag("--json", context.json, "Print JSON");
  explain->callback([&context, name] {
    if (*name == "-") {
      return look_confined(context, {},
                           [&] { explain_log(context, STDIN_FILENO, "standard input"); },
                           {STDIN_FILENO});
    }
    const NewestDump dump = newest_dump_named(context, *name);
    explain_refusals(context, dump.runs.refused);
    if (context.json && !dump.runs.refused.empty()) return;
    if (dump.runs.restore) {
      explain_restore_run(context, *dump.runs.restore);
      if (!dump.directory.empty() && !context.json) {
        std::cout << "The newest dump: kymo explain " << report::printable(dump.directory) << "\n";
      }
      return;
    }
    if (dump.directory.empty()) return;
    if (dump.chosen && !context.json) {
      std::cout << "The newest dump, " << report::printable(dump.directory) << ":\n";
    }
    const std::string place = readable_checkpoint(context, dump.directory);
    look_confined(context, {place}, [&] { explain_path(context, place, dump.directory); });
    if (!dump.complete.empty() && !context.json) {
      std::cout << "The last complete checkpoint: kymo explain " << report::printable(dump.complete)
                << "\n";
    }
  });
}

}  // namespace kymo::cli
