#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_text.h"
#include "checkpoints/checkpoint_named.h"
#include "confined.h"
#include "kymo/result.h"
#include "lens/analysis/find_recordings.h"
#include "lens/analysis/joined_parts.h"
#include "lens/analysis/recording.h"
#include "lens/analysis/summary.h"
#include "lens/report/html_report.h"
#include "lens/report/human.h"
#include "lens/report/json_report.h"
#include "lens/report/text_report.h"
#include "print.h"
#include "recordings/recordings.h"
#include "seconds_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

// Stands for the page of a part that is in the page of the first part.
constexpr std::string_view kJoined = "joined";

struct ReportArguments {
  std::vector<std::string> paths;
  std::string page;
  double from_s = -1;  // beginning of the samples that the page keeps; negative: not given
  double to_s = -1;
  std::uint64_t most_values = report::HtmlOptions().most_values;
  bool exact = false;
};

void report_error(Context& context, const Error& error, int exit_code = 1) {
  say(error.message);
  context.exit_code = exit_code;
}

// Summarizes all recordings that can be read, even if others cannot.
std::vector<analysis::Summary> summarize_all(
    const std::vector<std::vector<std::string>>& recordings, Context& context) {
  std::vector<analysis::Summary> summaries;
  for (const std::vector<std::string>& parts : recordings) {
    auto summary = analysis::summarize(parts);
    if (summary) {
      summaries.push_back(std::move(summary).value());
    } else {
      report_error(context, summary.error());
    }
  }
  return summaries;
}

void print(const std::vector<analysis::Summary>& summaries, const ReportArguments& arguments,
           Context& context) {
  std::string text;
  if (context.json) {
    // Names from a file may be invalid UTF-8. json_text() replaces these bytes and does not throw.
    text = json_text(report::json_report(summaries), 2) + "\n";
  } else {
    for (const analysis::Summary& summary : summaries) {
      text += (text.empty() ? "" : "\n\n") +
              report::text_report(summary, report::TextOptions{arguments.exact});
    }
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    report_error(context, system_error("write the report to standard output", errno));
  }
}

// The output file of each recording. Empty if no file was asked for.
Result<std::vector<std::string>> outputs_if_asked(const std::string& asked,
                                                  const std::vector<std::string>& recordings) {
  return asked.empty() ? std::vector<std::string>() : outputs_for(asked, recordings);
}

void make_data(const analysis::Summary& summary, const ReportArguments& arguments,
               std::string& data, Context& context) {
  report::HtmlOptions options;
  options.most_values = arguments.most_values;
  if (arguments.from_s >= 0 || arguments.to_s >= 0) {
    options.samples = {
        static_cast<std::uint64_t>(std::max(arguments.from_s, 0.0) * 1e9),
        arguments.to_s < 0 ? UINT64_MAX : static_cast<std::uint64_t>(arguments.to_s * 1e9)};
  }
  Result<std::string> made = report::report_data(summary, options);
  if (!made) return report_error(context, made.error());
  data = std::move(made).value();
}

void write_page(const std::string& data, const std::string& path, Context& context) {
  const Result<std::string> page = report::report_page(data, "");
  if (!page) return report_error(context, page.error());
  if (auto written = replace_file(path, *page); !written) {
    return report_error(context, written.error());
  }
  if (!context.quiet) std::fprintf(stderr, "page written to %s\n", report::printable(path).c_str());
}

// The part of the verb that runs without rights. Sets the data of the page of each recording, if it
// is asked for. The parts of one recording have one page: the others after the first get kJoined.
void look(const std::vector<std::string>& paths, const ReportArguments& arguments,
          std::vector<std::string>& made, Context& context) {
  wait_for_recordings(paths);
  const std::vector<std::vector<std::string>> recordings = analysis::join_parts(paths);
  const auto place_of = [&](const std::string& path) -> std::string& {
    const auto found = std::find(paths.begin(), paths.end(), path);
    return made.at(static_cast<std::size_t>(found - paths.begin()));
  };
  for (const std::vector<std::string>& parts : recordings) {
    for (std::size_t i = 1; i < parts.size(); ++i) place_of(parts[i]) = kJoined;
  }
  const auto summaries = summarize_all(recordings, context);
  if (summaries.empty()) return;
  if (!context.quiet) print(summaries, arguments, context);
  if (arguments.page.empty()) return;
  for (const analysis::Summary& summary : summaries) {
    make_data(summary, arguments, place_of(summary.recording.path), context);
  }
}

void check_range(const ReportArguments& arguments) {
  if (arguments.from_s < 0 && arguments.to_s < 0) return;
  if (arguments.page.empty()) {
    throw CLI::ValidationError(
        "--from, --to", "they select samples for a page: use them together with --html PAGE.html");
  }
  if (arguments.to_s >= 0 && arguments.to_s <= arguments.from_s) {
    throw CLI::ValidationError("--to",
                               "the range ends before it begins: --to must be larger than --from");
  }
}

void report_on(const ReportArguments& arguments, Context& context) {
  check_range(arguments);
  if (context.quiet && arguments.page.empty()) {
    throw CLI::ValidationError(
        "--quiet", "it hides the report, which is the only output: use it together with --html");
  }
  std::vector<std::string> named;
  for (const std::string& path : analysis::without_companions(arguments.paths)) {
    named.push_back(recordings_named(context, path));
  }
  const auto paths = analysis::find_all_recordings(named);
  if (!paths) return report_error(context, paths.error());
  const auto pages = outputs_if_asked(arguments.page, *paths);
  if (!pages) return report_error(context, pages.error(), kWrongUsage);
  const std::vector<std::string> made =
      make_confined(context, with_recordings(*paths), paths->size(),
                    [&](auto& texts) { look(*paths, arguments, texts, context); });
  const auto joined = std::count(made.begin(), made.end(), kJoined);
  const bool one_page = static_cast<std::size_t>(joined) + 1 == made.size();
  for (std::size_t i = 0; i < paths->size(); ++i) {
    if (made[i].empty() || made[i] == kJoined) continue;
    write_page(made[i], one_page ? arguments.page : pages->at(i), context);
  }
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      app.add_subcommand("report", "Summarize a recording: totals, rates, phases, gaps");
  verb->fallthrough();
  verb->add_option("RECORDING", arguments->paths,
                   "Recordings (.tsv, .tsv.zst), or directories that hold recordings, such as a "
                   "checkpoint, or "
                   "jobs or ids of checkpoints (of a job: its newest dump). The parts of a "
                   "recording are read "
                   "as one")
      ->required();
  verb->add_flag("--json", context.json, "Print JSON, with exact values");
  verb->add_flag("--exact", arguments->exact, "Print the values as recorded, without scaling");
  verb->add_flag("-q,--quiet", context.quiet, "With --html: print no report");
  verb->add_option(
      "--html", arguments->page,
      "Write to this file an HTML page with charts that can be zoomed; it works without a network; "
      "of "
      "several recordings, such as the dump and the restore of a checkpoint, run.html becomes "
      "run-dump.html and run-restore.html");
  verb->add_option(
          "--from", arguments->from_s,
          "With --html, for a long recording: beginning of the range of which the page keeps "
          "every sample, such as 90s or 1.5h, or a number of seconds")
      ->transform(seconds_text())
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--to", arguments->to_s, "With --html, for a long recording: end of that range")
      ->transform(seconds_text())
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--most-values", arguments->most_values,
                   "Keep every sample in the page if the recording has at most this many values")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->callback([arguments, &context] { report_on(*arguments, context); });
}

}  // namespace kymo::cli
