// Shows a history as text for a person, and as JSON for a program.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lens/report/history.h"
#include "lens/report/human.h"
#include "lens/report/short_reason.h"
#include "lens/report/table.h"

namespace kymo::report {
namespace {

using Align = Table::Align;

constexpr std::size_t kMaxBars = 72;

std::string shown(double value, HistoryMetric metric) {
  switch (metric) {
    case HistoryMetric::duration:
    case HistoryMetric::frozen:
      return duration(value);
    case HistoryMetric::bytes:
      return bytes(value);
    case HistoryMetric::throughput:
      break;
  }
  return bytes(value) + "/s";
}

std::string share_of(double before, double after) {
  return before == 0 ? "" : signed_percent(after / before - 1);
}

const HistoryLevel* level_of(const History& history, HistoryMetric metric) {
  for (const HistoryLevel& level : history.levels) {
    if (level.metric == metric) {
      return &level;
    }
  }
  return nullptr;
}

// A bar for each of the newest compared runs. A mark below shows where the level changed.
std::string chart(const History& history) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const HistoryMetric metric = history.options.metric;
  const HistoryLevel* level = level_of(history, metric);
  if (level == nullptr) {
    return {};
  }
  const std::size_t count = history.compared.size();
  const std::size_t first = count > kMaxBars ? count - kMaxBars : 0;
  const double range = level->most - level->least;
  std::string bars;
  for (std::size_t i = first; i < count; ++i) {
    const double value = *value_of(history.runs[history.compared[i]], metric);
    const double height = range > 0 ? (value - level->least) / range : 0;
    bars += kBars.at(std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7));
  }
  std::string text = fmt::format("  {}  {} to {}\n", bars, shown(level->least, metric),
                                 shown(level->most, metric));
  std::string marks(count - first, ' ');
  for (const HistoryChange& change : history.changes) {
    if (change.found.at >= first) {
      marks[change.found.at - first] = change.worse ? '^' : 'v';
    }
  }
  marks.erase(marks.find_last_not_of(' ') + 1);
  return marks.empty() ? text : text + "  " + marks + "\n";
}

std::string levels_table(const History& history) {
  Table table({{"METRIC", Align::left},
               {"MEDIAN"},
               {"MIDDLE HALF"},
               {"P95"},
               {"P99"},
               {"LEAST"},
               {"MOST"}});
  for (const HistoryLevel& level : history.levels) {
    table.add({std::string(name_of(level.metric)), shown(level.median, level.metric),
               shown(level.low, level.metric) + " to " + shown(level.high, level.metric),
               shown(level.p95, level.metric), shown(level.p99, level.metric),
               shown(level.least, level.metric), shown(level.most, level.metric)});
  }
  return table.empty() ? "" : table.str();
}

std::string moves_table(const History& history, const HistoryChange& change) {
  Table table({{"WHAT MOVED", Align::left}, {"BEFORE"}, {"AFTER"}, {"CHANGE"}, {"", Align::left}});
  const auto add = [&](const HistoryMove& move) {
    const std::string own =
        move.at ? "with " + printable(history.runs[history.compared[*move.at]].checkpoint) : "";
    table.add({printable(move.name), shown(move.before, move.metric),
               shown(move.after, move.metric), share_of(move.before, move.after), own});
  };
  std::for_each(change.metrics.begin(), change.metrics.end(), add);
  const std::size_t phases = std::min(kMovedPhases, change.phases.size());
  std::for_each(change.phases.begin(), change.phases.begin() + static_cast<std::ptrdiff_t>(phases),
                add);
  if (!change.states.empty()) add(change.states.front());
  return table.str(4);
}

std::string change_text(const History& history, const HistoryChange& change) {
  const HistoryRun& run = history.runs[history.compared[change.found.at]];
  const char* how = change.found.drift ? "drifts, and got" : "got";
  std::string because;
  for (const std::string& line : change.because) because += "    " + printable(line) + "\n";
  return fmt::format(
             "{} {} {} with {} of {} ({})\n{}    the best cut of {} runs in two: z = {:.2f}, p = "
             "{:.4f}\n",
             name_of(history.options.metric), how, change.worse ? "worse" : "better",
             printable(run.checkpoint), wall_clock(run.created_unix_ns),
             signed_percent(change.ratio - 1), because, change.found.end - change.found.begin,
             change.found.test.statistic, change.found.test.p) +
         moves_table(history, change);
}

std::string verdict_text(const History& history) {
  if (!history.verdict) {
    return {};
  }
  const HistoryVerdict& verdict = *history.verdict;
  const HistoryMetric metric = history.options.metric;
  const std::string since =
      verdict.since
          ? " since " + printable(history.runs[history.compared[*verdict.since]].checkpoint)
          : std::string();
  if (verdict.baseline == 0) {
    return fmt::format(
        "too few runs to tell a regression: the newest is compared with 5 or more before it{}\n",
        since);
  }
  const char* const outcome = verdict.regression  ? "REGRESSION"
                              : verdict.too_noisy ? "TOO NOISY TO TELL a regression"
                                                  : "no regression";
  const char* const advice =
      verdict.too_noisy ? "  A single run tells nothing here: compare several, with --newest 5\n"
                        : "";
  return fmt::format("{}: {} {}, median of {} before{} {}: {} (allowed {}, noise up to {})\n{}",
                     outcome, name_of(metric), shown(verdict.newest, metric), verdict.baseline,
                     since, shown(verdict.before, metric),
                     signed_percent(verdict.worse_by) + (verdict.worse_by > 0 ? " worse" : ""),
                     signed_percent(*history.options.allowed_regression),
                     signed_percent(verdict.noise), advice);
}

std::string runs_table(const History& history, std::size_t rows) {
  const bool restores = std::any_of(history.runs.begin(), history.runs.end(),
                                    [](const HistoryRun& run) { return run.away_ns.has_value(); });
  Table table({{"WHEN", Align::left},
               {"DURATION"},
               {restores ? "AWAY" : "STOOD STILL"},
               {"IMAGES"},
               {"THROUGHPUT"},
               {"DIRECTORY", Align::left},
               {"", Align::left}});
  const std::size_t count = history.runs.size();
  const std::size_t first = count > rows ? count - rows : 0;
  for (std::size_t i = first; i < count; ++i) {
    const HistoryRun& run = history.runs[i];
    const std::optional<double> throughput = value_of(run, HistoryMetric::throughput);
    const std::optional<std::uint64_t>& time = restores ? run.away_ns : run.stood_still_ns;
    std::string note = run.error.empty() ? run.warmth
                                         : std::string(run.refused ? "refused: " : "failed: ") +
                                               short_reason(run.error);
    if (run.error.empty() && !run.conditions.empty()) {
      note += (note.empty() ? "" : "; ") + run.conditions;
    }
    constexpr std::size_t kMaxNote = 60;
    table.add({wall_clock(run.created_unix_ns),
               run.duration_ns == 0 ? "-" : duration(run.duration_ns), time ? duration(*time) : "-",
               run.image_bytes == 0 ? "-" : bytes(run.image_bytes),
               throughput ? bytes(*throughput) + "/s" : "-",
               run.directory.empty() ? "-" : printable(run.directory),
               shortened(printable(note), kMaxNote)});
  }
  std::string text = table.empty() ? "" : table.str();
  if (first > 0) {
    text += fmt::format("  and {} older ones (--rows)\n", first);
  }
  // The table has no room for the whole error, which names the directory also if it is that of a copy.
  if (first < count && !history.runs.back().error.empty()) {
    text +=
        fmt::format("the newest {}: {}\n", history.runs.back().refused ? "was refused" : "failed",
                    printable(history.runs.back().error));
  }
  return text;
}

// 0: unknown.
std::optional<std::uint64_t> value_if_known(std::uint64_t value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

nlohmann::json or_null(const std::optional<std::uint64_t>& time) {
  return time ? nlohmann::json(*time) : nlohmann::json();
}

nlohmann::json json_of(const HistoryRun& run) {
  nlohmann::json phases = nlohmann::json::object();
  nlohmann::json states = nlohmann::json::object();
  for (const auto& [name, ns] : run.phases) {
    (is_state(name) ? states : phases)[name] = ns;
  }
  return {{"checkpoint", run.checkpoint},
          {"directory", run.directory},
          {"created_unix_ns", run.created_unix_ns},
          {"error", run.error},
          {"reason", short_reason(run.error)},
          {"refused", run.refused},
          {"failure", run.failure},
          {"duration_ns", or_null(value_if_known(run.duration_ns))},
          {"image_bytes", run.image_bytes},
          {"stood_still_ns", or_null(run.stood_still_ns)},
          {"away_ns", or_null(run.away_ns)},
          {"conditions", run.conditions},
          {"warmth", run.warmth},
          {"cold", run.cold()},
          {"phases_ns", std::move(phases)},
          {"states_ns", std::move(states)}};
}

nlohmann::json json_of(const History& history, const std::vector<HistoryMove>& moves) {
  nlohmann::json list = nlohmann::json::array();
  for (const HistoryMove& move : moves) {
    list.push_back({{"name", move.name}, {"before", move.before}, {"after", move.after}});
    if (move.at) list.back()["at"] = history.runs[history.compared[*move.at]].checkpoint;
  }
  return list;
}

nlohmann::json json_of(const History& history, const HistoryChange& change) {
  const HistoryRun& run = history.runs[history.compared[change.found.at]];
  return {{"run", history.compared[change.found.at]},
          {"checkpoint", run.checkpoint},
          {"created_unix_ns", run.created_unix_ns},
          {"kind", change.found.drift ? "drift" : "step"},
          {"worse", change.worse},
          {"ratio", change.ratio},
          {"test", "maximally selected Mann-Whitney"},
          {"statistic", change.found.test.statistic},
          {"p", change.found.test.p},
          {"runs_tested", change.found.end - change.found.begin},
          {"metrics", json_of(history, change.metrics)},
          {"phases_ns", json_of(history, change.phases)},
          {"states_ns", json_of(history, change.states)},
          {"because", change.because}};
}

nlohmann::json json_of(const History& history, const HistoryVerdict& verdict) {
  const nlohmann::json since =
      verdict.since ? nlohmann::json(history.compared[*verdict.since]) : nlohmann::json();
  if (verdict.baseline == 0) {
    return {{"enough_runs", false}, {"regression", false}};
  }
  return {{"enough_runs", true},
          {"since_run", since},
          {"regression", verdict.regression},
          {"too_noisy", verdict.too_noisy},
          {"baseline_runs", verdict.baseline},
          {"before", verdict.before},
          {"newest", verdict.newest},
          {"worse_by", verdict.worse_by},
          {"allowed", *history.options.allowed_regression},
          {"noise", verdict.noise}};
}

}  // namespace

std::string text_of(const History& history, const std::string& title, std::size_t rows) {
  std::string text = printable(title) + "\n";
  const auto count = [&history](bool refused) {
    return static_cast<std::size_t>(std::count_if(
        history.runs.begin(), history.runs.end(),
        [&](const HistoryRun& run) { return !run.error.empty() && run.refused == refused; }));
  };
  const std::size_t failed = count(false);
  const std::size_t refused = count(true);
  const std::size_t unlike = history.runs.size() - history.compared.size() - failed - refused;
  text += fmt::format("  {} runs, {} compared by {}", history.runs.size(), history.compared.size(),
                      name_of(history.options.metric));
  if (failed > 0) {
    text += fmt::format(", {} failed", failed);
  }
  if (refused > 0) {
    text += fmt::format(", {} refused", refused);
  }
  if (unlike > 0) {
    text += fmt::format(", {} unlike {}", unlike, history.newest_left_out ? "them" : "the newest");
  }
  text += "\n";
  if (history.newest_left_out) {
    text +=
        "  the newest was cold and is left out: too few cold ones are known to compare it with\n";
  }
  text += chart(history) + levels_table(history);
  for (const HistoryChange& change : history.changes) {
    text += change_text(history, change);
  }
  if (history.compared.size() < analysis::kMinForChange) {
    text += fmt::format("too few runs to tell a change: {} of the {} that it takes\n",
                        history.compared.size(), analysis::kMinForChange);
  } else if (history.changes.empty()) {
    text += "no change: the runs before and after any cut are alike\n";
  }
  return text + verdict_text(history) + runs_table(history, rows);
}

nlohmann::json json_of(const History& history) {
  nlohmann::json runs = nlohmann::json::array();
  for (const HistoryRun& run : history.runs) {
    runs.push_back(json_of(run));
  }
  nlohmann::json levels = nlohmann::json::object();
  for (const HistoryLevel& level : history.levels) {
    levels[std::string(name_of(level.metric))] = {
        {"runs", level.runs},          {"median", level.median}, {"lower_quarter", level.low},
        {"upper_quarter", level.high}, {"p95", level.p95},       {"p99", level.p99},
        {"least", level.least},        {"most", level.most}};
  }
  nlohmann::json changes = nlohmann::json::array();
  for (const HistoryChange& change : history.changes) {
    changes.push_back(json_of(history, change));
  }
  nlohmann::json json{{"metric", name_of(history.options.metric)},
                      {"newest_left_out", history.newest_left_out},
                      {"runs", std::move(runs)},
                      {"compared", history.compared},
                      {"runs_needed", analysis::kMinForChange},
                      {"levels", std::move(levels)},
                      {"changes", std::move(changes)}};
  if (history.verdict) {
    json["regression"] = json_of(history, *history.verdict);
  }
  return json;
}

}  // namespace kymo::report
