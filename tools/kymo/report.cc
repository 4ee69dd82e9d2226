#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/find_recordings.h"
#include "analysis/recording.h"
#include "analysis/summary.h"
#include "base/file.h"
#include "base/json_text.h"
#include "kymo/result.h"
#include "print.h"
#include "recordings.h"
#include "report/html_report.h"
#include "report/json_report.h"
#include "report/plot.h"
#include "report/text_report.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> paths;
  std::string picture;
  std::string page;
  double from_s = -1;  // begin of the samples that the page keeps; negative: not given
  double to_s = -1;
  std::uint64_t most_values = report::HtmlOptions().most_values;
  bool exact = false;
};

void complain(Context& context, const Error& error, int exit_code = 1) {
  say(error.message);
  context.exit_code = exit_code;
}

// Summarizes all recordings that can be read, even if others cannot.
std::vector<analysis::Summary> summarize_all(const std::vector<std::string>& paths,
                                             Context& context) {
  std::vector<analysis::Summary> summaries;
  for (const std::string& path : paths) {
    auto summary = analysis::summarize(path);
    if (summary) {
      summaries.push_back(std::move(summary).value());
    } else {
      complain(context, summary.error());
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
    complain(context, system_error("write the report to standard output", errno));
  }
}

// The output file of each recording, by the recording's path. Empty if no file was asked for.
using Outputs = std::map<std::string, std::string>;

Result<Outputs> outputs_by_recording(const std::string& asked,
                                     const std::vector<std::string>& recordings) {
  Outputs outputs;
  if (asked.empty()) return outputs;
  const auto files = outputs_for(asked, recordings);
  if (!files) return files.error();
  for (std::size_t i = 0; i < recordings.size(); ++i) outputs[recordings[i]] = (*files)[i];
  return outputs;
}

void draw(const analysis::Summary& summary, const std::string& path, Context& context) {
  if (auto drawn = report::plot(summary, path); !drawn) return complain(context, drawn.error());
  if (!context.quiet) std::fprintf(stderr, "picture written to %s\n", path.c_str());
}

void write_page(const analysis::Summary& summary, const std::string& path,
                const ReportArguments& arguments, Context& context) {
  report::HtmlOptions options;
  options.most_values = arguments.most_values;
  if (arguments.from_s >= 0 || arguments.to_s >= 0) {
    options.samples = {
        static_cast<std::uint64_t>(std::max(arguments.from_s, 0.0) * 1e9),
        arguments.to_s < 0 ? UINT64_MAX : static_cast<std::uint64_t>(arguments.to_s * 1e9)};
  }
  const Result<std::string> page = report::html_report(summary, options);
  if (!page) return complain(context, page.error());
  if (auto written = replace_file(path, *page); !written) return complain(context, written.error());
  if (!context.quiet) std::fprintf(stderr, "page written to %s\n", path.c_str());
}

void check_range(const ReportArguments& arguments) {
  if (arguments.from_s < 0 && arguments.to_s < 0) return;
  if (arguments.page.empty()) {
    throw CLI::ValidationError(
        "--from, --to", "they choose which samples a page keeps: give them with --html PAGE.html");
  }
  if (arguments.to_s >= 0 && arguments.to_s <= arguments.from_s) {
    throw CLI::ValidationError("--to",
                               "the range ends before it begins: --to must be larger than --from");
  }
}

void report_on(const ReportArguments& arguments, Context& context) {
  check_range(arguments);
  if (context.quiet && arguments.picture.empty() && arguments.page.empty()) {
    throw CLI::ValidationError(
        "--quiet", "there is nothing to do without the text: give it with --html or --plot");
  }
  if (!arguments.picture.empty()) {
    if (auto format = report::picture_format(arguments.picture); !format) {
      return complain(context, format.error(), kWrongUsage);
    }
  }
  const auto paths = analysis::find_all_recordings(arguments.paths);
  if (!paths) return complain(context, paths.error());
  const Result<Outputs> pictures = outputs_by_recording(arguments.picture, *paths);
  if (!pictures) return complain(context, pictures.error(), kWrongUsage);
  const Result<Outputs> pages = outputs_by_recording(arguments.page, *paths);
  if (!pages) return complain(context, pages.error(), kWrongUsage);
  wait_for_recordings(*paths);
  const auto summaries = summarize_all(*paths, context);
  if (summaries.empty()) return;
  if (!context.quiet) print(summaries, arguments, context);
  for (const analysis::Summary& summary : summaries) {
    const std::string& path = summary.recording.path;
    if (!pictures->empty()) draw(summary, pictures->at(path), context);
    if (!pages->empty()) write_page(summary, pages->at(path), arguments, context);
  }
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      app.add_subcommand("report", "Summarize a recording: totals, rates, phases, gaps");
  verb->fallthrough();
  verb->add_option(
          "RECORDING", arguments->paths,
          "Recordings (.tsv, .tsv.zst), or directories that hold some, such as a checkpoint's")
      ->required();
  verb->add_flag("--json", context.json, "Print JSON, with exact values");
  verb->add_flag("--exact", arguments->exact, "Print values as recorded, not scaled");
  verb->add_flag("-q,--quiet", context.quiet,
                 "With --html or --plot: write the page or picture, and print no report");
  verb->add_option("--plot", arguments->picture, "Draw a picture into this .png or .svg file");
  verb->add_option("--html", arguments->page,
                   "Write a page with charts that zoom into this file; it needs no network");
  verb->add_option("--from", arguments->from_s,
                   "With --html: begin of the range, in seconds, of which a page that would be too "
                   "large keeps every sample")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--to", arguments->to_s, "With --html: end of that range, in seconds")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--most-values", arguments->most_values,
                   "Keep every sample of at most so many values in a page")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->callback([arguments, &context] { report_on(*arguments, context); });
}

}  // namespace kymo::cli
