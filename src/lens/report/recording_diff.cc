#include "lens/report/recording_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lens/report/about.h"
#include "lens/report/human.h"
#include "lens/report/table.h"
#include "recorder/metrics/unit_names.h"

namespace kymo::report {
namespace {

using analysis::DiffRun;
using analysis::MetricDiff;
using analysis::RecordingDiff;
using Align = Table::Align;
using DiffVerdict = MetricDiff::Verdict;

constexpr std::size_t kDiffLabel = 12;
constexpr std::size_t kDiffLine = 100;

std::string labelled_line(const char* label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kDiffLabel, text);
}

std::string metric_name(const MetricDiff& metric) {
  return (metric.phase ? "phase: " : "") + printable(metric.name);
}

bool is_rate(const MetricDiff& metric) {
  return metric.kind == Kind::counter && !metric.events && !metric.total;
}

std::string amount(const std::optional<double>& value_of_it, const MetricDiff& metric) {
  if (!value_of_it) return "-";
  return is_rate(metric) ? rate(*value_of_it, metric.unit) : value(*value_of_it, metric.unit);
}

std::string amount_of(const MetricDiff& metric, std::size_t side) {
  const std::optional<double>& amount_there = side == 0 ? metric.before : metric.after;
  if (amount_there && metric.in_first.at(side)) return "<= " + amount(amount_there, metric);
  if (!amount_there || !metric.above_last.at(side)) return amount(amount_there, metric);
  return "> " + value(*amount_there - 1, metric.unit);
}

std::string change_of(const MetricDiff& metric) {
  if (metric.unbounded) return "";
  if (const auto share = metric.share()) return signed_percent(*share);
  return metric.before && metric.after ? "from nothing" : "";
}

// `widened`: by what runs may differ, of two recordings.
std::string interval_of(const MetricDiff& metric, bool widened) {
  auto interval = metric.interval();
  if (!interval || std::isinf(interval->low)) return "";
  if (!widened) {
    interval->low += metric.between_runs;
    interval->high -= metric.between_runs;
  }
  std::string low = signed_percent(interval->low);
  low.erase(low.rfind(' '));  // the unit comes once, after both numbers
  return low + " to " + signed_percent(interval->high);
}

std::string p_of(const MetricDiff& metric) {
  return metric.adjusted_p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", metric.adjusted_p);
}

std::string side_line(const char* label, const std::vector<DiffRun>& runs) {
  if (runs.size() == 1) {
    return labelled_line(label, printable(runs.front().summary.recording.path));
  }
  std::vector<std::string> paths;
  for (const DiffRun& run : runs) paths.push_back(printable(run.summary.recording.path));
  paths.front().insert(0, fmt::format("{} recordings: ", runs.size()));
  return wrapped_list(label, paths, kDiffLabel, kDiffLine);
}

std::string lengths_of(const std::vector<DiffRun>& runs) {
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (const DiffRun& run : runs) {
    least = std::min(least, run.window.length_ns());
    most = std::max(most, run.window.length_ns());
  }
  const std::string text = duration(least);
  return least == most ? text : text + " to " + duration(most);
}

std::string compared_line(const RecordingDiff& diff) {
  const std::string from = diff.aligned_at.empty() ? "the first rows" : printable(diff.aligned_at);
  const std::string until = diff.until.empty() ? "" : " until " + printable(diff.until);
  return labelled_line("compared", fmt::format("from {}{}: {} of A, {} of B", from, until,
                                               lengths_of(diff.before), lengths_of(diff.after)));
}

// Says first if one side is longer: then equal rates mean more work.
std::string length_line(const RecordingDiff& diff) {
  const auto length = std::find_if(diff.metrics.begin(), diff.metrics.end(),
                                   [](const MetricDiff& metric) { return metric.length; });
  if (length == diff.metrics.end() || !length->share() || *length->share() == 0) return "";
  const double share = *length->share();
  const std::string how_much = fmt::format("B is {:.1f} % {} than A", std::abs(share) * 100,
                                           share > 0 ? "longer" : "shorter");
  if (length->verdict == DiffVerdict::changed) {
    return labelled_line("length", how_much + ", beyond noise");
  }
  if (length->verdict != DiffVerdict::not_told || length->tells_nothing) return "";
  return labelled_line("length", how_much + ": not tested (" + length->reason + ")");
}

std::string test_line(const RecordingDiff& diff) {
  std::string text = diff.by_runs
                         ? "Mann and Whitney's, on one value of each run"
                         : "Mann and Whitney's, on means of blocks long enough to be independent";
  text +=
      fmt::format("; p corrected (Holm) for {} metric{}", diff.tested, diff.tested == 1 ? "" : "s");
  if (diff.tested_totals != 0) text += fmt::format(", and for {} totals", diff.tested_totals);
  if (diff.margin > 0) text += fmt::format("; changes of up to {:g} % ignored", diff.margin * 100);
  return labelled_line("test", text);
}

std::vector<const MetricDiff*> with_verdict(const RecordingDiff& diff, DiffVerdict verdict) {
  std::vector<const MetricDiff*> metrics;
  for (const MetricDiff& metric : diff.metrics) {
    if (metric.verdict == verdict) metrics.push_back(&metric);
  }
  return metrics;
}

std::string more_line(std::size_t shown_rows, std::size_t all) {
  return shown_rows < all ? fmt::format("and {} more (--rows)\n", all - shown_rows) : "";
}

std::string changed_table(const RecordingDiff& diff, std::size_t rows) {
  const auto metrics = with_verdict(diff, DiffVerdict::changed);
  if (metrics.empty()) {
    const std::size_t told = with_verdict(diff, DiffVerdict::none).size();
    if (told == 0) return "";
    const std::size_t untested = with_verdict(diff, DiffVerdict::not_told).size();
    return "\nin the columns of the recordings, nothing changed beyond noise" +
           (untested == 0 ? "" : fmt::format("; {} could not be tested", untested)) + "\n";
  }
  Table table({{"CHANGED BEYOND NOISE", Align::left},
               {"A"},
               {"B"},
               {"median shift"},
               {"95 % interval"},
               {"p"},
               {diff.by_runs ? "runs" : "blocks"}});
  for (std::size_t i = 0; i < std::min(rows, metrics.size()); ++i) {
    const MetricDiff& metric = *metrics[i];
    table.add({metric_name(metric) + (metric.others ? " (counts others, too)" : ""),
               amount_of(metric, 0), amount_of(metric, 1), change_of(metric),
               interval_of(metric, false), p_of(metric),
               fmt::format("{}, {}", metric.samples_before, metric.samples_after)});
  }
  std::string text = "\n" + table.str(0) + more_line(rows, metrics.size());
  if (!diff.by_runs) {
    text +=
        "These two recordings differ beyond their own noise. To find out whether runs differ as "
        "much\n"
        "by themselves, compare several of each side: --base, --new\n";
  }
  return text;
}

std::string not_told_table(const RecordingDiff& diff, std::size_t rows, bool all) {
  auto metrics = with_verdict(diff, DiffVerdict::not_told);
  std::size_t seldom = 0;
  std::size_t dependent = 0;
  if (!all) {
    std::erase_if(metrics, [&](const MetricDiff* metric) {
      if (metric->tells_nothing) ++(metric->dependent ? dependent : seldom);
      return metric->tells_nothing;
    });
  }
  const auto one_sided = with_verdict(diff, DiffVerdict::one_sided);
  metrics.insert(metrics.end(), one_sided.begin(), one_sided.end());
  Table table({{"NOT TO BE TOLD FROM NOISE", Align::left},
               {"A"},
               {"B"},
               {"difference"},
               {"why", Align::left}});
  for (std::size_t i = 0; i < std::min(rows, metrics.size()); ++i) {
    const MetricDiff& metric = *metrics[i];
    const std::string why = metric.verdict == DiffVerdict::not_told ? metric.reason
                            : metric.before                         ? "only A has it"
                                                                    : "only B has it";
    table.add(
        {metric_name(metric), amount_of(metric, 0), amount_of(metric, 1), change_of(metric), why});
  }
  std::string text = table.empty() ? "" : "\n" + table.str(0) + more_line(rows, metrics.size());
  if (seldom != 0) {
    text += fmt::format("{}{} {} too seldom to be tested (-v lists {})\n", text.empty() ? "\n" : "",
                        seldom, seldom == 1 ? "metric moves" : "metrics move",
                        seldom == 1 ? "it" : "them");
  }
  if (dependent != 0) {
    text += fmt::format(
        "{}{} {} too few independent values to be tested (-v lists {})\n", text.empty() ? "\n" : "",
        dependent,
        dependent == 1 ? "metric that differs little has" : "metrics that differ little have",
        dependent == 1 ? "it" : "them");
  }
  return text;
}

std::string unchanged_list(const RecordingDiff& diff, DiffVerdict verdict, const char* label) {
  std::vector<std::string> names;
  for (const MetricDiff* metric : with_verdict(diff, verdict)) {
    names.push_back(metric_name(*metric) + (metric->one_bucket ? " (in one bucket)" : ""));
  }
  if (names.empty()) return {};
  std::sort(names.begin(), names.end());
  names.front().insert(0, fmt::format("{}: ", names.size()));
  return "\n" + wrapped_list(label, names, kDiffLabel, kDiffLine);
}

std::string note_lines(const RecordingDiff& diff) {
  std::string text;
  for (const std::string& note : diff.notes) text += labelled_line("note", printable(note));
  return text;
}

std::string names_of(const std::vector<const MetricDiff*>& metrics) {
  constexpr std::size_t kMaxNames = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxNames, metrics.size()); ++i) {
    text += (i == 0 ? "" : ", ") + metric_name(*metrics[i]);
  }
  if (metrics.size() > kMaxNames) text += fmt::format(" and {} more", metrics.size() - kMaxNames);
  return text;
}

// How many runs would decide all of them. Nothing: more than kMaxRunsToAdvise.
std::optional<std::size_t> runs_to_decide_all(const std::vector<const MetricDiff*>& metrics,
                                              const RecordingDiff& diff,
                                              const AllowedChange& allowed) {
  std::optional<std::size_t> most = 0;
  for (const MetricDiff* metric : metrics) {
    const auto needed = runs_to_decide(*metric, diff, allowed);
    if (!needed) return {};
    most = std::max(*most, *needed);
  }
  return most;
}

std::string runs_line(const std::vector<const MetricDiff*>& metrics, const RecordingDiff& diff,
                      const AllowedChange& allowed) {
  const std::string here = fmt::format(" (here {} and {})", diff.before.size(), diff.after.size());
  const auto needed = runs_to_decide_all(metrics, diff, allowed);
  if (!needed) {
    return fmt::format(
        "  More than {} recordings of each side would be needed{}: the change is too near to the "
        "limit, or the runs differ too much\n",
        kMaxRunsToAdvise, here);
  }
  return fmt::format(
      "  It takes about {} recordings of each side{}{}\n", *needed, here,
      diff.metrics.size() > 1 ? ", or fewer for a single metric: --metric NAME" : "");
}

// Each metric that counts, with the interval that decides.
std::string limit_table(const RecordingDiff& diff, const ChangeCheck& check,
                        const std::string& limit, std::size_t rows) {
  Table table(
      {{"LIMIT " + limit, Align::left},
       {"A"},
       {"B"},
       {"change"},
       {diff.by_runs ? "95 % interval" : fmt::format("interval, ±{:g} %", diff.margin * 100)},
       {"answer", Align::left}});
  std::size_t shown = 0;
  const auto add = [&](const std::vector<const MetricDiff*>& metrics, const auto& answer) {
    for (const MetricDiff* metric : metrics) {
      if (shown++ >= rows) continue;
      table.add({metric_name(*metric), amount_of(*metric, 0), amount_of(*metric, 1),
                 change_of(*metric), interval_of(*metric, true), answer(*metric)});
    }
  };
  add(check.changed, [](const MetricDiff&) { return "beyond"; });
  add(check.undecided, [&](const MetricDiff& metric) -> std::string {
    if (metric.unbounded) return "not decided: above the last bucket";
    if (is_hidden(metric, check.allowed)) return "not decided: its buckets are too wide";
    if (!metric.interval()) return "not decided: no interval";
    if (!diff.by_runs) return "not decided";
    const auto needed = runs_to_decide(metric, diff, check.allowed);
    return needed ? fmt::format("not decided: about {} runs each would", *needed)
                  : fmt::format("not decided: not by {} runs each", kMaxRunsToAdvise);
  });
  add(check.within, [](const MetricDiff&) { return "within"; });
  return table.empty() ? "" : "\n" + table.str(0) + more_line(rows, shown);
}

std::string broken_lines(const RecordingDiff& diff) {
  std::string text;
  for (const std::string& reason : diff.broken) text += "  " + printable(reason) + "\n";
  return text;
}

// Advice for each reason why metrics could not be tested.
std::string undecided_lines(const RecordingDiff& diff, const ChangeCheck& check) {
  bool unfinished = false;
  bool one_sided = false;
  bool too_wide = false;
  bool longer = false;
  std::vector<const MetricDiff*> too_few;
  for (const MetricDiff* metric : check.undecided) {
    longer = longer || ((metric->length || metric->total) && diff.lengths_differ);
    if (metric->not_known_yet) {
      unfinished = true;
    } else if (metric->verdict == DiffVerdict::one_sided) {
      one_sided = true;
    } else if (is_hidden(*metric, check.allowed)) {
      too_wide = true;
    } else {
      too_few.push_back(metric);
    }
  }
  std::string text;
  if (!too_few.empty()) text += runs_line(too_few, diff, check.allowed);
  if (longer) {
    text +=
        "  If the recordings were only stopped at different times, compare as much of each: --to "
        "SECONDS\n";
  }
  if (too_wide) {
    text +=
        "  The buckets of a histogram do not tell it, however many runs there are: give it "
        "narrower "
        "ones (per_doubling)\n  and a last bound above all values, or compare its mean: --metric "
        "\"NAME mean\"\n";
  }
  if (one_sided) text += "  Only one side has some of them: --metric NAME asks about others\n";
  if (unfinished) text += "  A recording is unfinished: compare again when it has ended\n";
  return text;
}

std::string why_not_judged(const MetricDiff& metric) {
  return metric.one_bucket ? "one bucket that is wider than the limit holds it (per_doubling makes "
                             "narrower ones)"
                           : "it cannot be tested, and differs by less than the limit";
}

std::string not_judged_lines(const ChangeCheck& check) {
  std::map<std::string, std::vector<const MetricDiff*>> by_reason;
  for (const MetricDiff* metric : check.not_judged) {
    by_reason[why_not_judged(*metric)].push_back(metric);
  }
  std::string text;
  for (const auto& [reason, metrics] : by_reason) {
    text += "  Not judged, because " + reason + ": " + names_of(metrics) + "\n";
  }
  return text;
}

// What the outcome does not say: what does not count, and that the load of the machine may be the cause.
std::string other_lines(const ChangeCheck& check) {
  std::string text = not_judged_lines(check);
  const bool only_times =
      !check.changed.empty() &&
      std::all_of(check.changed.begin(), check.changed.end(), [](const MetricDiff* metric) {
        return metric->length || metric->phase || is_rate(*metric);
      });
  if (only_times) {
    text +=
        "  Lengths and rates also change if the machine is busier. Totals do not: --metric "
        "\"NAME total\"\n";
  }
  if (!check.of_others.empty()) {
    text +=
        "  Not counted, because other programs change it, too: " + names_of(check.of_others) + "\n";
  }
  return text;
}

std::string allowed_lines(const RecordingDiff& diff, const AllowedChange& allowed,
                          std::size_t rows) {
  const ChangeCheck check = check_change(diff, allowed);
  const std::string share =
      fmt::format("{}{:g} %", allowed.only_increases ? "+" : "", allowed.share * 100);
  const std::string table = limit_table(diff, check, share, rows);
  if (check.broken) {
    return table + "\nCANNOT TELL: these recordings do not hold all that happened\n" +
           broken_lines(diff) + other_lines(check);
  }
  switch (check.outcome()) {
    case ChangeCheck::Outcome::no_change:
      break;
    case ChangeCheck::Outcome::changed:
      return table +
             fmt::format("\nCHANGE: {} beyond noise and beyond {}: {}\n",
                         check.changed.size() == 1
                             ? "a metric"
                             : fmt::format("{} metrics", check.changed.size()),
                         share, names_of(check.changed)) +
             other_lines(check);
    case ChangeCheck::Outcome::cannot_tell:
      if (check.undecided.empty()) {
        return table + "\nCANNOT TELL: there is no metric whose change could be compared with " +
               share + "\n" + other_lines(check);
      }
      return table +
             fmt::format("\nCANNOT TELL whether {} changed beyond noise and beyond {}: {}\n",
                         check.undecided.size() == 1
                             ? "a metric"
                             : fmt::format("{} metrics", check.undecided.size()),
                         share, names_of(check.undecided)) +
             undecided_lines(diff, check) + other_lines(check);
  }
  return table + "\n" + to_string(check.outcome(), allowed.only_increases) + " beyond " + share +
         ": the whole interval of each metric that was judged is within\n" + other_lines(check);
}

nlohmann::json check_json(const RecordingDiff& diff, const AllowedChange& allowed) {
  const ChangeCheck check = check_change(diff, allowed);
  const auto names = [](const std::vector<const MetricDiff*>& metrics) {
    nlohmann::json list = nlohmann::json::array();
    for (const MetricDiff* metric : metrics) list.push_back(metric->name);
    return list;
  };
  nlohmann::json not_judged = nlohmann::json::array();
  for (const MetricDiff* metric : check.not_judged) {
    not_judged.push_back({{"name", metric->name}, {"reason", why_not_judged(*metric)}});
  }
  const auto runs_needed = runs_to_decide_all(check.undecided, diff, allowed);
  return {{"allowed", allowed.share},
          {"only_increases", allowed.only_increases},
          {"outcome", to_string(check.outcome(), allowed.only_increases)},
          {"failed", !check.changed.empty()},
          {"metrics", names(check.changed)},
          {"cannot_tell", names(check.undecided)},
          {"within", names(check.within)},
          {"not_counted", names(check.of_others)},
          {"not_judged", std::move(not_judged)},
          {"broken", diff.broken},
          {"runs_needed", runs_needed ? nlohmann::json(*runs_needed) : nlohmann::json()}};
}

nlohmann::json run_json(const DiffRun& run) {
  return {{"path", run.summary.recording.path},
          {"origin_ns", run.origin_ns},
          {"begin_ns", run.window.begin_ns},
          {"end_ns", run.window.end_ns}};
}

nlohmann::json or_null(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

nlohmann::json metric_json(const MetricDiff& metric) {
  nlohmann::json json{{"name", metric.name},
                      {"what", metric.phase      ? "phase duration"
                               : metric.quantile ? "quantile"
                               : metric.length   ? "length"
                               : metric.total    ? "total"
                               : metric.events   ? "growth"
                               : is_rate(metric) ? "rate per second"
                                                 : "mean"},
                      {"unit", unit_name(metric.unit)},
                      {"a", or_null(metric.before)},
                      {"b", or_null(metric.after)},
                      {"share", or_null(metric.share())},
                      {"verdict", to_string(metric.verdict)}};
  if (!metric.reason.empty()) json["reason"] = metric.reason;
  if (metric.above_last[0]) json["a_above_last_bucket"] = true;
  if (metric.above_last[1]) json["b_above_last_bucket"] = true;
  if (metric.in_first[0]) json["a_in_first_bucket"] = true;
  if (metric.in_first[1]) json["b_in_first_bucket"] = true;
  if (metric.one_bucket) json["in_one_bucket"] = true;
  if (metric.others) json["counts_others"] = true;
  if (const auto interval = metric.interval(); interval && !std::isinf(interval->low)) {
    json["interval_low"] = interval->low;
    json["interval_high"] = interval->high;
  }
  if (metric.samples_before == 0) return json;
  json["median_shift"] = metric.shift.median;
  json["shift_low"] = metric.shift.low;
  json["shift_high"] = metric.shift.high;
  json["shift_level"] = metric.shift.level;
  json["p"] = metric.p;
  json["adjusted_p"] = metric.adjusted_p;
  json["values_a"] = metric.samples_before;
  json["values_b"] = metric.samples_after;
  if (metric.block_ns != 0) json["block_ns"] = metric.block_ns;
  return json;
}

}  // namespace

std::string text_of(const RecordingDiff& diff, std::size_t rows,
                    std::optional<AllowedChange> allowed, bool all) {
  std::string text;
  if (diff.unfinished) text = note_lines(diff) + "\n";
  text += side_line("A", diff.before) + side_line("B", diff.after) + compared_line(diff) +
          length_line(diff) + test_line(diff);
  text += changed_table(diff, rows) + not_told_table(diff, rows, all) +
          unchanged_list(diff, DiffVerdict::none, "no change") +
          unchanged_list(diff, DiffVerdict::the_same, "the same");
  if (!diff.unfinished && !diff.notes.empty()) text += "\n" + note_lines(diff);
  return allowed ? text + allowed_lines(diff, *allowed, rows) : text;
}

nlohmann::json json_of(const RecordingDiff& diff, std::optional<AllowedChange> allowed) {
  nlohmann::json json{{"format_version", 1},
                      {"aligned_at", diff.aligned_at},
                      {"until", diff.until},
                      {"test", "Mann-Whitney"},
                      {"correction", "Holm"},
                      {"values", diff.by_runs ? "runs" : "blocks"},
                      {"allowed_p", analysis::kDiffAllowedP},
                      {"margin", diff.margin},
                      {"tested", diff.tested},
                      {"tested_totals", diff.tested_totals},
                      {"notes", diff.notes}};
  for (const auto& [name, runs] : {std::pair{"a", &diff.before}, std::pair{"b", &diff.after}}) {
    json[name] = nlohmann::json::array();
    for (const DiffRun& run : *runs) json[name].push_back(run_json(run));
  }
  json["metrics"] = nlohmann::json::array();
  for (const MetricDiff& metric : diff.metrics) json["metrics"].push_back(metric_json(metric));
  if (allowed) json["fail_on_change"] = check_json(diff, *allowed);
  return json;
}

}  // namespace kymo::report
