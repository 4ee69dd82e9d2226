#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/find_recordings.h"
#include "analysis/recording.h"
#include "analysis/summary.h"
#include "base/file.h"
#include "kymo/result.h"
#include "print.h"
#include "report/html_report.h"
#include "report/json_report.h"
#include "report/plot.h"
#include "report/text_report.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ReportArguments {
  std::string path;
  std::string picture;
  std::string page;
  double from_s = -1;  // of the samples that the page keeps; negative: not asked
  double to_s = -1;
  std::uint64_t most_values = report::HtmlOptions().most_values;
  bool exact = false;
};

void complain(Context& context, const Error& error, int exit_code = 1) {
  say(error.message);
  context.exit_code = exit_code;
}

// Several recordings get a file each: out.png becomes out-dump.png, out-restore.png.
std::string path_for(const std::string& asked, const std::string& recording, bool several) {
  if (!several) {
    return asked;
  }
  const std::string stem = analysis::recording_stem(recording);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  const std::size_t ending = std::min(asked.rfind('.'), asked.size());
  return asked.substr(0, ending) + "-" + name + asked.substr(ending);
}

// What can be read is reported, also where another recording beside it cannot.
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
    // Names from a file may hold anything: what is no UTF-8 is replaced, not thrown about.
    text = report::json_report(summaries).dump(2, ' ', false,
                                               nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
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

void draw(const analysis::Summary& summary, const ReportArguments& arguments, bool several,
          Context& context) {
  const std::string path = path_for(arguments.picture, summary.recording.path, several);
  if (auto drawn = report::plot(summary, path); !drawn) return complain(context, drawn.error());
  std::fprintf(stderr, "picture written to %s\n", path.c_str());
}

void write_page(const analysis::Summary& summary, const ReportArguments& arguments, bool several,
                Context& context) {
  report::HtmlOptions options;
  options.most_values = arguments.most_values;
  if (arguments.from_s >= 0 || arguments.to_s >= 0) {
    options.samples = {
        static_cast<std::uint64_t>(std::max(arguments.from_s, 0.0) * 1e9),
        arguments.to_s < 0 ? UINT64_MAX : static_cast<std::uint64_t>(arguments.to_s * 1e9)};
  }
  const std::string path = path_for(arguments.page, summary.recording.path, several);
  const Result<std::string> page = report::html_report(summary, options);
  if (!page) return complain(context, page.error());
  if (auto written = replace_file(path, *page); !written) return complain(context, written.error());
  std::fprintf(stderr, "page written to %s\n", path.c_str());
}

void report_on(const ReportArguments& arguments, Context& context) {
  if (!arguments.picture.empty()) {
    if (auto format = report::picture_format(arguments.picture); !format) {
      return complain(context, format.error(), 2);
    }
  }
  const auto paths = analysis::find_recordings(arguments.path);
  if (!paths) {
    return complain(context, paths.error());
  }
  const auto summaries = summarize_all(*paths, context);
  if (summaries.empty()) {
    return;
  }
  print(summaries, arguments, context);
  for (const analysis::Summary& summary : summaries) {
    if (!arguments.picture.empty()) draw(summary, arguments, paths->size() > 1, context);
    if (!arguments.page.empty()) write_page(summary, arguments, paths->size() > 1, context);
  }
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb = app.add_subcommand("report", "Say what a recording holds");
  verb->fallthrough();
  verb->add_option(
          "RECORDING", arguments->path,
          "A recording (.tsv, .tsv.zst), or a directory that holds some: that of a checkpoint")
      ->required();
  verb->add_flag("--json", context.json, "Print JSON, with exact values");
  verb->add_flag("--exact", arguments->exact, "Print values as recorded, not scaled");
  verb->add_option("--plot", arguments->picture, "Draw a picture into this .png or .svg file");
  verb->add_option("--html", arguments->page,
                   "Write a page with charts that zoom into this file; it needs no network");
  verb->add_option("--from", arguments->from_s,
                   "Second from which a page that would be too large keeps single samples")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--to", arguments->to_s, "Second until which it does")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--most-values", arguments->most_values,
                   "Values that a page holds singly before it counts as too large")
      ->capture_default_str();
  verb->callback([arguments, &context] { report_on(*arguments, context); });
}

}  // namespace kymo::cli
