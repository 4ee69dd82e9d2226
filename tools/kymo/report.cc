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
#include "kymo/result.h"
#include "report/json_report.h"
#include "report/plot.h"
#include "report/text_report.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr std::size_t kEndingLength = 4;  // .png, .svg

struct ReportArguments {
  std::string path;
  std::string picture;
  bool exact = false;
};

void complain(Context& context, const Error& error, int exit_code = 1) {
  std::fprintf(stderr, "kymo: %s\n", error.message.c_str());
  context.exit_code = exit_code;
}

// Several recordings get a picture each: out.png becomes out-dump.png, out-restore.png.
std::string picture_path(const std::string& asked, const std::string& recording, bool several) {
  if (!several) {
    return asked;
  }
  const std::string stem = analysis::recording_stem(recording);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  const std::size_t ending = asked.size() - kEndingLength;
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
  if (arguments.picture.empty()) {
    return;
  }
  for (const analysis::Summary& summary : summaries) {
    const std::string path =
        picture_path(arguments.picture, summary.recording.path, paths->size() > 1);
    if (auto drawn = report::plot(summary, path); !drawn) {
      complain(context, drawn.error());
    } else {
      std::fprintf(stderr, "picture written to %s\n", path.c_str());
    }
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
  verb->callback([arguments, &context] { report_on(*arguments, context); });
}

}  // namespace kymo::cli
