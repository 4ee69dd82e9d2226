#include "export/export.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/find_recordings.h"
#include "analysis/recording.h"
#include "analysis/summary.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ExportArguments {
  std::string path;
  std::string format;
  std::string output;
  exporting::ExportOptions options;
};

// Several recordings get a file each: out.csv becomes out-dump.csv, out-restore.csv.
std::string output_for(const std::string& output, const std::string& recording) {
  const std::string stem = analysis::recording_stem(recording);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  const std::size_t slash = output.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = output.rfind('.');
  const std::size_t ending =
      dot == std::string::npos || dot <= begin ? output.size() : dot;  // none, or a hidden file's
  return output.substr(0, ending) + "-" + name + output.substr(ending);
}

// What is damaged or missing, by line: an export must not look more whole than its recording.
void say_what_is_missing(const analysis::Summary& summary, const exporting::Exported& exported) {
  const std::string& path = summary.recording.path;
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
  nlohmann::json json{
      {"recording", summary.recording.path},           {"output", output},
      {"format", exporting::to_string(format)},        {"rows", exported.rows},
      {"rows_passed_over", exported.rows_passed_over}, {"columns", summary.columns.size()},
      {"left_out_lines", summary.left_out.lines()},    {"notes", summary.recording.notes}};
  for (const std::string& note : exported.notes) json["notes"].push_back(note);
  return json;
}

// Null where it failed.
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
  if (output != "-") {
    std::fprintf(stderr, "%s written to %s: %s rows of %s columns\n", exporting::to_string(format),
                 output.c_str(), grouped(exported->rows).c_str(),
                 grouped(summary->columns.size()).c_str());
  }
  return export_json(*summary, *exported, output, format);
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
  const auto recordings = analysis::find_recordings(arguments.path);
  if (!recordings) return fail(context, recordings.error());
  if (to_stdout && recordings->size() > 1) {
    return refuse_export(context, arguments.path + " holds " + std::to_string(recordings->size()) +
                                      " recordings: standard output takes one, name it");
  }
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& recording : *recordings) {
    const std::string output =
        recordings->size() == 1 ? arguments.output : output_for(arguments.output, recording);
    nlohmann::json one = export_one(recording, output, *format, arguments, context);
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
          "RECORDING", arguments->path,
          "A recording (.tsv, .tsv.zst), or a directory that holds some: that of a checkpoint")
      ->required();
  verb->add_option("--output", arguments->output, "File to write; - is standard output")
      ->required();
  verb->add_option("--format", arguments->format,
                   "perfetto, openmetrics, csv, sqlite or clickhouse; "
                   "else what the file's ending says");
  verb->add_flag("--every-row", arguments->options.every_row,
                 "openmetrics: also rows within one millisecond, which Prometheus would refuse");
  verb->add_option("--table-prefix", arguments->options.table_prefix,
                   "clickhouse: what the tables' names begin with; else the recording's name");
  verb->add_flag("--json", context.json, "Say as JSON what was written");
  verb->callback([arguments, &context] { export_all(*arguments, context); });
}

}  // namespace kymo::cli
