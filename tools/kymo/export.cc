#include "export/export.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/find_recordings.h"
#include "analysis/recording.h"
#include "analysis/summary.h"
#include "print.h"
#include "recordings.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> paths;
  std::string format;
  std::string output;
  exporting::ExportOptions options;
};

// Says what is damaged or missing, so that an export does not seem more complete than its
// recording.
void say_what_is_missing(const analysis::Summary& summary, const exporting::Exported& exported) {
  const std::string& path = summary.recording.path;
  const analysis::Finish finish = summary.recording.finish;
  if (finish != analysis::Finish::ended) {
    say(path + ": " + sentence_of(finish, *summary.recording.metadata));
  }
  for (const std::string& sentence : summary.left_out.sentences()) {
    say(path + ": left out " + sentence);
  }
  for (const auto* notes : {&summary.recording.notes, &exported.notes}) {
    for (const std::string& note : *notes) {
      say(path + ": " + note);
    }
  }
  if (exported.rows_passed_over != 0) {
    say(path + ": " + grouped(exported.rows_passed_over) +
        " rows passed over, of which Prometheus would not take more than one a millisecond; "
        "--every-row writes them");
  }
}

nlohmann::json export_json(const analysis::Summary& summary, const exporting::Exported& exported,
                           const std::string& output, exporting::Format format) {
  nlohmann::json json{{"recording", summary.recording.path},
                      {"finish", analysis::to_string(summary.recording.finish)},
                      {"output", output},
                      {"format", exporting::to_string(format)},
                      {"rows", exported.rows},
                      {"rows_passed_over", exported.rows_passed_over},
                      {"columns", summary.columns.size()},
                      {"left_out_lines", summary.left_out.lines()},
                      {"notes", summary.recording.notes}};
  for (const std::string& note : exported.notes) json["notes"].push_back(note);
  return json;
}

// Exports one recording. Returns null if it failed.
nlohmann::json export_one(const std::string& recording, const std::string& output,
                          exporting::Format format, const ExportArguments& arguments,
                          Context& context) {
  const auto summary = analysis::summarize(recording);
  if (!summary) {
    fail(context, summary.error());
    return nullptr;
  }
  const auto exported = exporting::export_recording(*summary, format, output, arguments.options);
  if (!exported) {
    fail(context, exported.error());
    return nullptr;
  }
  say_what_is_missing(*summary, *exported);
  if (output != "-" && !context.quiet) {
    std::fprintf(stderr, "%s written to %s: %s rows of %s columns\n", exporting::to_string(format),
                 output.c_str(), grouped(exported->rows).c_str(),
                 grouped(summary->columns.size()).c_str());
  }
  return export_json(*summary, *exported, output, format);
}

std::string is_metric_prefix(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const bool begins = text.empty() || text.front() < '0' || text.front() > '9';
  return plain && begins ? "" : "letters, digits and _, the first no digit: " + text;
}

void refuse_export(Context& context, const std::string& why) {
  say(why);
  context.exit_code = kWrongUsage;
}

void export_all(const ExportArguments& arguments, Context& context) {
  const auto format = arguments.format.empty() ? exporting::format_of(arguments.output)
                                               : exporting::parse_format(arguments.format);
  if (!format) return refuse_export(context, format.error().message);
  const bool to_stdout = arguments.output == "-";
  if (to_stdout && (context.json || *format == exporting::Format::sqlite)) {
    return refuse_export(
        context, "standard output takes one text: give --output FILE with --json, and for SQLite");
  }
  const auto recordings = analysis::find_all_recordings(arguments.paths);
  if (!recordings) return fail(context, recordings.error());
  if (to_stdout && recordings->size() > 1) {
    return refuse_export(context, "there are " + std::to_string(recordings->size()) +
                                      " recordings, " + recordings->front() +
                                      " the first: standard output takes one, name it");
  }
  const auto outputs = outputs_for(arguments.output, *recordings);
  if (!outputs) return refuse_export(context, outputs.error().message);
  wait_for_recordings(*recordings);
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < recordings->size(); ++i) {
    nlohmann::json one = export_one((*recordings)[i], (*outputs)[i], *format, arguments, context);
    if (!one.is_null()) all.push_back(std::move(one));
  }
  if (context.json) print_json({{"format_version", 1}, {"exports", std::move(all)}});
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* verb = app.add_subcommand("export", "Write a recording in the format of another tool");
  verb->fallthrough();
  verb->add_option(
          "RECORDING", arguments->paths,
          "Recordings (.tsv, .tsv.zst), or directories that hold some, such as a checkpoint's")
      ->required();
  verb->add_option("-o,--output", arguments->output, "File to write; - is standard output")
      ->required();
  verb->add_option("-f,--format", arguments->format,
                   "perfetto, openmetrics, csv, sqlite or clickhouse; "
                   "else what the file's ending says");
  verb->add_flag(
      "--every-row", arguments->options.every_row,
      "openmetrics: write also rows within one millisecond, which Prometheus would refuse");
  // CLI11 does not set an optional from an empty value, so this uses a function.
  verb->add_option_function<std::string>(
          "--metric-prefix",
          [arguments](const std::string& prefix) { arguments->options.metric_prefix = prefix; },
          "openmetrics: what the metrics' names begin with, may be empty; else what the recorded "
          "program gives them on /metrics")
      ->check(is_metric_prefix);
  verb->add_option("--table-prefix", arguments->options.table_prefix,
                   "clickhouse: what the tables' names begin with; else the recording's name");
  add_quiet_option(*verb, context);
  verb->add_flag("--json", context.json, "Print as JSON what was written");
  verb->callback([arguments, &context] { export_all(*arguments, context); });
}

}  // namespace kymo::cli
