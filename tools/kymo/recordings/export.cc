#include "lens/export/export.h"

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "base/json_text.h"
#include "checkpoints/checkpoint_named.h"
#include "confined.h"
#include "lens/analysis/find_recordings.h"
#include "lens/analysis/joined_parts.h"
#include "lens/analysis/recording.h"
#include "lens/analysis/summary.h"
#include "lens/report/human.h"
#include "print.h"
#include "recorder/metrics/exposition_name.h"
#include "recordings/recordings.h"
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
    say(path + ": " + report::with_commas(exported.rows_passed_over) +
        " rows left out, because Prometheus accepts only one row per millisecond; --every-row "
        "writes all rows");
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
                      {"columns", exported.columns},
                      {"spans", exported.spans},
                      {"left_out_lines", summary.left_out.lines()},
                      {"notes", summary.recording.notes}};
  for (const std::string& note : exported.notes) json["notes"].push_back(note);
  if (!summary.recording.parts.empty()) json["parts"] = summary.recording.parts;
  return json;
}

// Reads the recording and writes the export. Returns what --json prints of it, empty if it failed.
std::string write_export(const std::vector<std::string>& parts, const std::string& output,
                         const exporting::Destination& to, const ExportArguments& arguments,
                         Context& context) {
  const auto summary = analysis::summarize(parts);
  if (!summary) {
    fail(context, summary.error());
    return {};
  }
  const auto exported = exporting::export_recording(*summary, to, arguments.options);
  if (!exported) {
    fail(context, exported.error());
    return {};
  }
  say_what_is_missing(*summary, *exported);
  return json_text(export_json(*summary, *exported, output, to.format()));
}

// Exports one recording, which may have several parts. Returns null if it failed. Another process reads the recording and writes
// to the files that are opened here.
nlohmann::json export_one(const std::vector<std::string>& parts, const std::string& output,
                          exporting::Format format, const ExportArguments& arguments,
                          Context& context) {
  Result<exporting::Destination> to = exporting::Destination::open(parts, format, output);
  if (!to) {
    fail(context, to.error());
    return nullptr;
  }
  const int before = std::exchange(context.exit_code, 0);
  const std::vector<std::string> made = make_confined(
      context, with_recordings(parts), 1,
      [&](std::vector<std::string>& texts) {
        texts.front() = write_export(parts, output, *to, arguments, context);
      },
      to->descriptors());
  const bool good = context.exit_code == 0;
  if (good) context.exit_code = before;
  if (!good || made.front().empty()) return nullptr;
  if (const Result<void> published = to->publish(); !published) {
    fail(context, published.error());
    return nullptr;
  }
  nlohmann::json json = parse_object(made.front());
  if (output != "-" && !context.quiet) {
    const auto count = [&](const char* what) {
      return report::with_commas(number_of(json, what)) + " " + what;
    };
    const std::string counts = format == exporting::Format::otlp
                                   ? count("spans")
                                   : count("rows") + " of " + count("columns");
    std::fprintf(stderr, "%s written to %s: %s\n", exporting::to_string(format),
                 report::printable(output).c_str(), counts.c_str());
  }
  return json;
}

std::string is_metric_prefix(const std::string& text) {
  return is_exposition_prefix(text) ? "" : text + ": " + kExpositionPrefixRule;
}

void refuse_export(Context& context, const std::string& why) {
  say(why);
  context.exit_code = kWrongUsage;
}

// The files of all recordings that are named, each part as a file of its own.
Result<std::vector<std::string>> recordings_at(const ExportArguments& arguments,
                                               const Context& context) {
  std::vector<std::string> named;
  for (const std::string& path : analysis::without_companions(arguments.paths)) {
    named.push_back(recordings_named(context, path));
  }
  return analysis::find_all_recordings(named);
}

// Waits for recordings that are about to end, and joins the parts of rotated ones. Both read metadata, so they happen in a
// process without rights. It says of each file which recording it is a part of, and this process puts them together.
std::vector<std::vector<std::string>> join_confined(Context& context,
                                                    const std::vector<std::string>& paths) {
  const std::vector<std::string> places =
      make_confined(context, with_recordings(paths), paths.size(), [&](auto& texts) {
        wait_for_recordings(paths);
        std::vector<bool> told(paths.size());
        const auto groups = analysis::join_parts(paths);
        for (std::size_t group = 0; group < groups.size(); ++group) {
          for (std::size_t part = 0; part < groups[group].size(); ++part) {
            std::size_t at = 0;
            while (at < paths.size() && (told[at] || paths[at] != groups[group][part])) ++at;
            if (at == paths.size()) continue;
            told[at] = true;
            texts[at] = std::to_string(group) + " " + std::to_string(part);
          }
        }
      });
  std::map<std::pair<std::size_t, std::size_t>, std::string> sorted;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::istringstream place(places[i]);
    std::pair<std::size_t, std::size_t> of_part;
    if (place >> of_part.first >> of_part.second) sorted.emplace(of_part, paths[i]);
  }
  std::vector<std::vector<std::string>> recordings;
  std::size_t last = 0;
  for (const auto& [of_part, path] : sorted) {
    if (recordings.empty() || of_part.first != last) recordings.emplace_back();
    last = of_part.first;
    recordings.back().push_back(path);
  }
  return recordings;
}

void export_all(const ExportArguments& arguments, Context& context) {
  const auto format = arguments.format.empty() ? exporting::format_of(arguments.output)
                                               : exporting::parse_format(arguments.format);
  if (!format) return refuse_export(context, format.error().message);
  const bool to_stdout = arguments.output == "-";
  if (to_stdout && (context.json || *format == exporting::Format::sqlite)) {
    return refuse_export(
        context, *format == exporting::Format::sqlite
                     ? "an SQLite file cannot be written to standard output: give --output FILE"
                     : "the export and --json cannot both be written to standard output: give "
                       "--output FILE");
  }
  const Result<std::vector<std::string>> paths = recordings_at(arguments, context);
  if (!paths) return fail(context, paths.error());
  const std::vector<std::vector<std::string>> recordings = join_confined(context, *paths);
  if (recordings.empty()) return;  // the reason was printed
  std::vector<std::string> firsts;
  for (const std::vector<std::string>& parts : recordings) firsts.push_back(parts.front());
  if (to_stdout && firsts.size() > 1) {
    return refuse_export(context, "write " + std::to_string(firsts.size()) + " recordings, " +
                                      firsts.front() +
                                      "; name one recording, or give --output FILE");
  }
  const auto outputs = outputs_for(arguments.output, firsts);
  if (!outputs) return refuse_export(context, outputs.error().message);
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    nlohmann::json one = export_one(recordings[i], (*outputs)[i], *format, arguments, context);
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
          "Recordings (.tsv, .tsv.zst), or directories that hold recordings, such as a checkpoint, "
          "or "
          "jobs or ids of checkpoints (of a job: its newest dump). The parts of a recording are "
          "written as one")
      ->required();
  verb->add_option(
          "-o,--output", arguments->output,
          "File to write (-: standard output); of several recordings, such as the dump and "
          "the restore of a checkpoint, out.csv becomes out-dump.csv and out-restore.csv")
      ->required();
  verb->add_option("-f,--format", arguments->format,
                   "Format: perfetto, openmetrics, csv, sqlite, clickhouse or otlp (default: from "
                   "the ending of the file's name)");
  verb->add_flag("--every-row", arguments->options.every_row,
                 "openmetrics: write all rows, also several in one millisecond, which Prometheus "
                 "would refuse");
  // CLI11 does not set an optional from an empty value, so this uses a function.
  verb->add_option_function<std::string>(
          "--metric-prefix",
          [arguments](const std::string& prefix) { arguments->options.metric_prefix = prefix; },
          "openmetrics: prefix of the metrics' names, may be empty (default: the prefix that the "
          "recorded program uses on /metrics)")
      ->check(is_metric_prefix);
  verb->add_option("--table-prefix", arguments->options.table_prefix,
                   "clickhouse: prefix of the tables' names (default: the recording's name)");
  add_quiet_option(*verb, context);
  verb->add_flag("--json", context.json, "Print JSON about what was written");
  verb->callback([arguments, &context] { export_all(*arguments, context); });
}

}  // namespace kymo::cli
