#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/find_recordings.h"
#include "base/file.h"
#include "checkpoint_named.h"
#include "print.h"
#include "recordings.h"
#include "report/checkpoint_diff.h"
#include "report/diff_page.h"
#include "report/html_report.h"
#include "report/recording_diff.h"
#include "share_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using Paths = std::vector<std::string>;

struct DiffArguments {
  std::string before;
  std::string after;
  Paths base;
  Paths recent;
  std::string recording;
  analysis::DiffOptions options;
  std::optional<double> allowed_change;
  std::string page;
  std::uint64_t most_values = report::HtmlOptions().most_values;
  std::size_t rows = 20;
};

void write_diff_page(Context& context, const DiffArguments& arguments,
                     const analysis::RecordingDiff& diff) {
  const Result<std::string> page =
      report::diff_page(diff, arguments.allowed_change, arguments.most_values);
  if (!page) return fail(context, page.error());
  const Result<void> written = replace_file(arguments.page, *page);
  if (!written) return fail(context, written.error());
  std::cerr << "page written to " << arguments.page << '\n';
}

int exit_code_of(const report::ChangeCheck& check) {
  switch (check.outcome()) {
    case report::ChangeCheck::Outcome::no_change:
      return 0;
    case report::ChangeCheck::Outcome::changed:
      return 1;
    case report::ChangeCheck::Outcome::cannot_tell:
      break;
  }
  return kCannotTell;
}

// Compares recordings. The result is added to the result for the checkpoints, if there is one.
void compare_recordings(Context& context, const DiffArguments& arguments, const Paths& before,
                        const Paths& after, nlohmann::json json, std::string text) {
  Paths all = before;
  all.insert(all.end(), after.begin(), after.end());
  wait_for_recordings(all);
  const auto diff = analysis::diff_recordings(before, after, arguments.options);
  if (!diff) {
    std::cout << text;
    return fail(context, diff.error());
  }
  if (context.json) {
    nlohmann::json recordings = report::json_of(*diff, arguments.allowed_change);
    if (json.is_null()) {
      json = std::move(recordings);
    } else {
      json["recordings"] = std::move(recordings);
    }
    print_json(json);
  } else {
    text += text.empty() ? "" : "\n";
    std::cout << text << report::text_of(*diff, arguments.rows, arguments.allowed_change);
  }
  if (!arguments.page.empty()) write_diff_page(context, arguments, *diff);
  if (arguments.allowed_change) {
    context.exit_code = exit_code_of(report::check_change(*diff, *arguments.allowed_change));
  }
}

Result<Paths> gather(const Paths& named, const std::string& recording) {
  Paths all;
  for (const std::string& path : analysis::without_companions(named)) {
    const auto found = analysis::recordings_to_compare(path, recording);
    if (!found) return found.error();
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

void compare_sets(Context& context, const DiffArguments& arguments) {
  const Result<Paths> before = gather(arguments.base, arguments.recording);
  if (!before) return fail(context, before.error());
  const Result<Paths> after = gather(arguments.recent, arguments.recording);
  if (!after) return fail(context, after.error());
  compare_recordings(context, arguments, *before, *after, nullptr, "");
}

// Compares two recordings, or two checkpoints. If both checkpoints have recordings, these are
// compared, too.
void compare_two(Context& context, DiffArguments arguments) {
  arguments.before = checkpoint_named(context, arguments.before);
  arguments.after = checkpoint_named(context, arguments.after);
  const auto recordings_before =
      analysis::recordings_to_compare(arguments.before, arguments.recording);
  const auto recordings_after =
      analysis::recordings_to_compare(arguments.after, arguments.recording);
  const auto before = report::read_checkpoint_stats(arguments.before);
  const auto after = report::read_checkpoint_stats(arguments.after);
  if (!before || !after) {
    if (recordings_before && recordings_after) {
      return compare_recordings(context, arguments, *recordings_before, *recordings_after, nullptr,
                                "");
    }
    // If one is a recording and the other a checkpoint without recordings, report the checkpoint.
    if (recordings_before) return fail(context, recordings_after.error());
    if (recordings_after) return fail(context, recordings_before.error());
    return fail(context, !before ? before.error() : after.error());
  }
  // If the recording that the user named does not exist, it must be an error.
  if (!arguments.recording.empty() && !(recordings_before && recordings_after)) {
    return fail(context, !recordings_before ? recordings_before.error() : recordings_after.error());
  }
  const std::vector<report::Difference> differences = report::compare(*before, *after);
  const std::vector<std::string> notes = report::one_sided_notes(*before, *after);
  nlohmann::json json = report::json_of(differences, arguments.before, arguments.after, notes);
  std::string text = context.json ? ""
                                  : report::text_of(differences, arguments.before, arguments.after,
                                                    notes, arguments.rows);
  if (recordings_before && recordings_after) {
    return compare_recordings(context, arguments, *recordings_before, *recordings_after,
                              std::move(json), std::move(text));
  }
  if (arguments.allowed_change || !arguments.options.align.empty() || !arguments.page.empty()) {
    return fail(context, !recordings_before ? recordings_before.error() : recordings_after.error());
  }
  if (context.json) return print_json(json);
  std::cout << text;
}

void print_diff(Context& context, const DiffArguments& arguments) {
  const bool two = !arguments.before.empty() && !arguments.after.empty();
  const bool sets = !arguments.base.empty() && !arguments.recent.empty();
  if (two == sets || (sets && !arguments.before.empty()) ||
      (two && !(arguments.base.empty() && arguments.recent.empty()))) {
    throw CLI::ValidationError(
        "diff", arguments.base.empty() != arguments.recent.empty()
                    ? "wanted both --base and --new: " +
                          std::string(arguments.base.empty() ? "--base" : "--new") + " is missing"
                    : "wanted A and B, or --base PATH ... and --new PATH ...");
  }
  const analysis::DiffOptions& options = arguments.options;
  if (options.from_s && options.to_s && *options.from_s >= *options.to_s) {
    throw CLI::ValidationError("--to",
                               "the range ends before it begins: --to must be larger than --from");
  }
  sets ? compare_sets(context, arguments) : compare_two(context, arguments);
}

void add_recording_options(CLI::App& diff, const std::shared_ptr<DiffArguments>& arguments) {
  diff.add_option("--base", arguments->base, "Recordings of the runs before the change")
      ->option_text("PATH ...");
  diff.add_option("--new", arguments->recent, "Recordings of the runs after it")
      ->option_text("PATH ...");
  diff.add_option("--recording", arguments->recording,
                  "Which recording of a checkpoint: dump (default), restore, restore-2 ...");
  diff.add_option("--align", arguments->options.align,
                  "Compare this phase, from its beginning (default: from the first mark that all "
                  "recordings have until the last)");
  diff.add_option("--from", arguments->options.from_s,
                  "Begin of the range that is compared, in seconds after that mark");
  diff.add_option("--to", arguments->options.to_s, "End of the range, in seconds after that mark");
  diff.add_option("--metric", arguments->options.metrics,
                  "Compare only this metric, column or \"phase: NAME\" (may be repeated); fewer "
                  "metrics need "
                  "fewer runs")
      ->allow_extra_args(false);
  diff.add_option_function<std::string>(
          "--margin",
          [arguments](const std::string& text) {
            arguments->options.margin = parse_share("--margin", text);
          },
          "Ignore changes smaller than this (default 5% between two recordings, 0 between sets)")
      ->option_text("PERCENT");
  diff.add_option_function<std::string>(
          "--fail-on-change",
          [arguments](const std::string& text) {
            arguments->allowed_change = parse_share("--fail-on-change", text);
          },
          "Exit 1 when a metric changed by more than this and by more than noise, 3 when the "
          "recordings are too few to tell")
      ->option_text("PERCENT");
  diff.add_option("--html", arguments->page,
                  "Write a page with the recordings' charts over each other; it needs no network");
  diff.add_option("--most-values", arguments->most_values,
                  "Keep every sample of at most so many values in a page")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  CLI::App* diff = app.add_subcommand(
      "diff", "Compare two recordings, two sets of recordings or two checkpoints");
  auto arguments = std::make_shared<DiffArguments>();
  diff->fallthrough();
  diff->add_option("a", arguments->before,
                   "A recording, a folder of some, or a checkpoint: whatever kymo stats reads");
  diff->add_option("b", arguments->after, "Another, to be compared with it");
  add_recording_options(*diff, arguments);
  diff->add_option("--rows", arguments->rows, "How many differences to print")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  diff->add_flag("--json", context.json, "Print JSON, with all of them");
  diff->callback([&context, arguments] { print_diff(context, *arguments); });
}

}  // namespace kymo::cli
