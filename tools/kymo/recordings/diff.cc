#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoints/checkpoint_named.h"
#include "checkpoints/checkpoint_pair.h"
#include "confined.h"
#include "lens/analysis/find_recordings.h"
#include "lens/report/diff_page.h"
#include "lens/report/flame_page.h"
#include "lens/report/html_report.h"
#include "lens/report/human.h"
#include "lens/report/recording_diff.h"
#include "print.h"
#include "profiles/diff_profiles.h"
#include "profiles/profile_file.h"
#include "recordings/recordings.h"
#include "recordings/share_option.h"
#include "seconds_option.h"
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
  bool only_increases = false;  // --fail-on-increase
  std::string page;
  std::uint64_t most_values = report::HtmlOptions().most_values;
  std::size_t rows = 20;
  std::string value;          // of stack profiles
  std::string phase;          // of stack profiles
  Paths only_for_recordings;  // options that were given
};

std::optional<report::AllowedChange> allowed_by(const DiffArguments& arguments) {
  if (!arguments.allowed_change) return {};
  return report::AllowedChange(*arguments.allowed_change, arguments.only_increases);
}

void make_diff_data(Context& context, const DiffArguments& arguments,
                    const analysis::RecordingDiff& diff, const nlohmann::json& checkpoints,
                    std::string& data) {
  Result<std::string> made =
      report::diff_data(diff, allowed_by(arguments), arguments.most_values, checkpoints);
  if (!made) return fail(context, made.error());
  data = std::move(made).value();
}

int exit_code_of(report::ChangeCheck::Outcome outcome) {
  switch (outcome) {
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
                        const Paths& after, const nlohmann::json& checkpoints, std::string text,
                        std::string& data) {
  Paths all = before;
  all.insert(all.end(), after.begin(), after.end());
  wait_for_recordings(all);
  const auto diff = analysis::diff_recordings(before, after, arguments.options);
  if (!diff) {
    if (!context.quiet) std::cout << text;
    return fail(context, diff.error());
  }
  if (context.quiet) {
    // The exit code or the page says it all.
  } else if (context.json) {
    nlohmann::json recordings = report::json_of(*diff, allowed_by(arguments));
    nlohmann::json both = checkpoints;
    if (both.is_null()) {
      both = std::move(recordings);
    } else {
      both["recordings"] = std::move(recordings);
    }
    print_json(both);
  } else {
    text += text.empty() ? "" : "\n";
    std::cout << text
              << report::text_of(*diff, arguments.rows, allowed_by(arguments), context.verbose);
  }
  if (!arguments.page.empty()) make_diff_data(context, arguments, *diff, checkpoints, data);
  if (arguments.allowed_change && context.exit_code == 0) {
    context.exit_code = exit_code_of(report::check_change(*diff, *allowed_by(arguments)).outcome());
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

void compare_stacks(Context& context, const DiffArguments& arguments, std::string& data) {
  const auto outcome = compare_profiles(
      context,
      {arguments.before, arguments.after, arguments.only_for_recordings, arguments.value,
       arguments.phase, arguments.allowed_change, arguments.rows, !arguments.page.empty()},
      data);
  if (outcome && context.exit_code == 0) context.exit_code = exit_code_of(*outcome);
}

void compare_sets(Context& context, const DiffArguments& arguments, std::string& data) {
  for (const Paths* const paths : {&arguments.base, &arguments.recent}) {
    const auto profile = std::find_if(paths->begin(), paths->end(), is_profile);
    if (profile == paths->end()) continue;
    say("diff: " + *profile + " is a stack profile: give two of them as A and B, without --base " +
        "and --new");
    context.exit_code = kWrongUsage;
    return;
  }
  const Result<Paths> before = gather(arguments.base, arguments.recording);
  if (!before) return fail(context, before.error());
  const Result<Paths> after = gather(arguments.recent, arguments.recording);
  if (!after) return fail(context, after.error());
  compare_recordings(context, arguments, *before, *after, nullptr, "", data);
}

// Compares two recordings, or two checkpoints. If both checkpoints have recordings, these are
// compared, too.
void compare_two(Context& context, const DiffArguments& arguments, std::string& data) {
  const auto recordings_before =
      analysis::recordings_to_compare(arguments.before, arguments.recording);
  const auto recordings_after =
      analysis::recordings_to_compare(arguments.after, arguments.recording);
  Result<CheckpointPair> pair =
      compare_checkpoints(arguments.before, arguments.after, arguments.rows);
  if (!pair) {
    if (recordings_before && recordings_after) {
      return compare_recordings(context, arguments, *recordings_before, *recordings_after, nullptr,
                                "", data);
    }
    // If one is a recording and the other a checkpoint without recordings, report the checkpoint.
    if (recordings_before) return fail(context, recordings_after.error());
    if (recordings_after) return fail(context, recordings_before.error());
    return fail(context, pair.error());
  }
  // If the recording that the user named does not exist, it must be an error.
  if (!arguments.recording.empty() && !(recordings_before && recordings_after)) {
    return fail(context, !recordings_before ? recordings_before.error() : recordings_after.error());
  }
  if (recordings_before && recordings_after) {
    return compare_recordings(context, arguments, *recordings_before, *recordings_after, pair->json,
                              std::move(pair->text), data);
  }
  if (arguments.allowed_change || !arguments.options.align.empty() || !arguments.page.empty()) {
    return fail(context, !recordings_before ? recordings_before.error() : recordings_after.error());
  }
  if (context.json) return print_json(pair->json);
  std::cout << pair->text;
}

void write_page(Context& context, const DiffArguments& arguments, const Result<std::string>& page) {
  if (!page) return fail(context, page.error());
  const Result<void> written = replace_file(arguments.page, *page);
  if (!written) return fail(context, written.error());
  if (!context.quiet) {
    std::cerr << "page written to " << report::printable(arguments.page) << '\n';
  }
}

void refuse_for_recordings(Context& context, const std::string& option) {
  say("diff: " + option + " is for stack profiles (see kymo diff --help)");
  context.exit_code = kWrongUsage;
}

// Compares in a process without rights, and writes the page here.
void compare(Context& context, DiffArguments arguments, bool sets) {
  Paths paths = arguments.base;
  paths.insert(paths.end(), arguments.recent.begin(), arguments.recent.end());
  if (!sets) {
    arguments.before = checkpoint_to_read(context, arguments.before);
    arguments.after = checkpoint_to_read(context, arguments.after);
    paths = {arguments.before, arguments.after};
  }
  // The data of a page: of recordings, or of stack profiles.
  const std::vector<std::string> data =
      make_confined(context, with_recordings(paths), 2, [&](Paths& made) {
        const bool stacks = !sets && (is_profile(arguments.before) || is_profile(arguments.after));
        if (stacks) return compare_stacks(context, arguments, made[1]);
        if (!arguments.value.empty()) return refuse_for_recordings(context, "--value");
        if (!arguments.phase.empty()) return refuse_for_recordings(context, "--phase");
        if (sets) return compare_sets(context, arguments, made[0]);
        compare_two(context, arguments, made[0]);
      });
  if (!data[0].empty()) write_page(context, arguments, report::diff_page(data[0]));
  if (!data[1].empty()) write_page(context, arguments, report::flame_page(data[1]));
}

void print_diff(Context& context, const DiffArguments& arguments) {
  const bool two = !arguments.before.empty() && !arguments.after.empty();
  const bool sets = !arguments.base.empty() && !arguments.recent.empty();
  if (two == sets || (sets && !arguments.before.empty()) ||
      (two && !(arguments.base.empty() && arguments.recent.empty()))) {
    throw CLI::ValidationError(
        "diff", arguments.base.empty() != arguments.recent.empty()
                    ? "give both --base and --new: " +
                          std::string(arguments.base.empty() ? "--base" : "--new") + " is missing"
                    : "give A and B, or --base PATH ... and --new PATH ...");
  }
  if (context.quiet && !arguments.allowed_change && arguments.page.empty()) {
    throw CLI::ValidationError("--quiet",
                               "it hides the comparison, which is the only output: use it together "
                               "with --fail-on-change, --fail-on-increase or --html");
  }
  const analysis::DiffOptions& options = arguments.options;
  if (options.from_s && options.to_s && *options.from_s >= *options.to_s) {
    throw CLI::ValidationError("--to",
                               "the range ends before it begins: --to must be larger than --from");
  }
  if (arguments.allowed_change) context.failed_code = kNoVerdict;
  compare(context, arguments, sets);
}

void add_recording_options(CLI::App& diff, const std::shared_ptr<DiffArguments>& arguments) {
  diff.add_option("--base", arguments->base, "Recordings of the runs before the change")
      ->option_text("PATH ...");
  diff.add_option("--new", arguments->recent, "Recordings of the runs after the change")
      ->option_text("PATH ...");
  diff.add_option("--recording", arguments->recording,
                  "Recording of a checkpoint to compare: dump (default), restore, restore-2 ...");
  diff.add_option(
      "--align", arguments->options.align,
      "Compare only this phase, aligned at its beginning (default: from the first to the "
      "last mark that all recordings have)");
  diff.add_option(
          "--from", arguments->options.from_s,
          "Start of the range to compare, such as 2s or -100ms, or a number of seconds, after "
          "the beginning of the phase, or after the first common mark")
      ->transform(seconds_text());
  diff.add_option("--to", arguments->options.to_s,
                  "End of the range to compare, as long after the same point")
      ->transform(seconds_text());
  diff.add_option(
          "--metric", arguments->options.metrics,
          "Compare only this metric, column, \"phase: NAME\", total of a counter (\"NAME total\"), "
          "\"length\", or mean or quantile of a histogram (\"NAME mean\", \"NAME p99\"; may be "
          "repeated); fewer metrics need fewer runs")
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
          "Exit with 0 only if the whole interval of each change is within this, with 1 if one is "
          "beyond it, with 3 if it is not decided, with 2 if they could not be compared; of stack "
          "profiles: if the share of a function changed by more than this part of the whole "
          "profile")
      ->option_text("PERCENT");
  diff.add_option_function<std::string>(
          "--fail-on-increase",
          [arguments](const std::string& text) {
            arguments->allowed_change = parse_share("--fail-on-increase", text);
            arguments->only_increases = true;
          },
          "Like --fail-on-change, but a metric may fall by any share; only for recordings")
      ->option_text("PERCENT")
      ->excludes("--fail-on-change");
  diff.add_option(
      "--html", arguments->page,
      "Write to this file an HTML page with the charts of both sides in one picture or, "
      "of stack profiles, a flame graph; it works without a network");
  add_value_option(diff, arguments->value);
  diff.add_option("--phase", arguments->phase,
                  "Of two stack profiles of dumps or restores: compare only this phase");
  diff.add_option("--most-values", arguments->most_values,
                  "Keep every sample in the page if the recordings have at most this many values")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  CLI::App* diff = app.add_subcommand(
      "diff",
      "Compare two recordings, two sets of recordings, two checkpoints or two stack profiles");
  auto arguments = std::make_shared<DiffArguments>();
  diff->fallthrough();
  diff->add_option(
      "a", arguments->before,
      "A recording, a folder of recordings, a checkpoint (as for kymo stats), or a stack "
      "profile in the format of pprof");
  diff->add_option("b", arguments->after,
                   "The recording, folder, checkpoint or profile to compare with A");
  add_recording_options(*diff, arguments);
  diff->add_option("--rows", arguments->rows, "Number of differences to print")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  diff->add_flag(
      "-v,--verbose", context.verbose,
      "List also the metrics that move too seldom, or differ too little, to be compared");
  diff->add_flag("--json", context.json, "Print JSON, with all differences");
  add_quiet_option(*diff, context);
  diff->callback([&context, arguments, diff] {
    for (const char* option : {"--recording", "--align", "--from", "--to", "--metric", "--margin",
                               "--most-values", "--fail-on-increase"}) {
      if (diff->count(option) > 0) arguments->only_for_recordings.emplace_back(option);
    }
    print_diff(context, *arguments);
  });
}

}  // namespace kymo::cli
