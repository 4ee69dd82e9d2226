#include "lens/report/history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <span>
#include <string_view>

#include "base/rate.h"
#include "checkpoint/diagnosis/change.h"
#include "lens/analysis/robust.h"
#include "lens/report/human.h"

namespace kymo::report {
namespace {

// What the names of states of kymod and of the target begin with.
constexpr std::string_view kCriu = "CRIU: ";
// The maximum and minimum number of earlier runs that the newest runs are compared with.
constexpr std::size_t kMaxBaseline = 20;
constexpr std::size_t kMinBaseline = 5;
// Noise alone seldom exceeds this number of scaled median deviations.
constexpr double kNoiseDeviations = 3;

// 1 if a larger value is worse, -1 if it is better.
double worse_sign(HistoryMetric metric) {
  return metric == HistoryMetric::throughput ? -1 : 1;
}

// The runs that are comparable to the newest of those that `usable` names: they are usable, have the same conditions, and
// are cold if it is cold. The newest run itself is included.
template <class Usable>
std::vector<std::size_t> like_the_newest(const std::vector<HistoryRun>& runs,
                                         const Usable& usable) {
  const auto newest = std::find_if(runs.rbegin(), runs.rend(), usable);
  std::vector<std::size_t> like;
  for (std::size_t i = 0; newest != runs.rend() && i < runs.size(); ++i) {
    if (usable(runs[i]) && runs[i].conditions == newest->conditions &&
        runs[i].cold() == newest->cold()) {
      like.push_back(i);
    }
  }
  return like;
}

// A cold run, as after each restart of kymod, must not hide what is known of the warm ones before it.
void compare(History& history) {
  const auto usable = [&](const HistoryRun& run) {
    return run.error.empty() && value_of(run, history.options.metric).has_value();
  };
  const auto warm = [&](const HistoryRun& run) { return usable(run) && !run.cold(); };
  history.compared = like_the_newest(history.runs, usable);
  if (history.compared.empty() || history.compared.size() > kMinBaseline ||
      !history.runs[history.compared.back()].cold()) {
    return;
  }
  std::vector<std::size_t> others = like_the_newest(history.runs, warm);
  history.newest_left_out = others.size() > history.compared.size();
  if (history.newest_left_out) history.compared = std::move(others);
}

// Of those of these runs that have the metric.
std::vector<double> values_in(const History& history, std::span<const std::size_t> runs,
                              HistoryMetric metric) {
  std::vector<double> values;
  for (const std::size_t i : runs) {
    if (const std::optional<double> value = value_of(history.runs[i], metric)) {
      values.push_back(*value);
    }
  }
  return values;
}

// A run that does not have the phase counts as 0.
std::vector<double> phase_in(const History& history, std::span<const std::size_t> runs,
                             const std::string& name) {
  std::vector<double> values;
  for (const std::size_t i : runs) {
    values.push_back(0);
    for (const auto& [phase, duration_ns] : history.runs[i].phases) {
      if (phase == name) values.back() = static_cast<double>(duration_ns);
    }
  }
  return values;
}

std::vector<double> logarithms(const std::vector<double>& values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double value : values) {
    logs.push_back(std::log(std::max(value, 1.0)));
  }
  return logs;
}

HistoryLevel level_of(HistoryMetric metric, const std::vector<double>& values) {
  constexpr double kQuarter = 0.25;
  return {metric,
          values.size(),
          analysis::median(values),
          analysis::quantile(values, kQuarter),
          analysis::quantile(values, 1 - kQuarter),
          analysis::quantile(values, 0.95),
          analysis::quantile(values, 0.99),
          analysis::quantile(values, 0),
          analysis::quantile(values, 1)};
}

// The compared runs on one side of a change, as far as the change was found in them.
std::span<const std::size_t> side(const History& history, const analysis::Change& change,
                                  bool after) {
  const std::span<const std::size_t> all(history.compared);
  return after ? all.subspan(change.at, change.end - change.at)
               : all.subspan(change.begin, change.at - change.begin);
}

// All compared runs in which the change was found.
std::span<const std::size_t> both_sides(const History& history, const analysis::Change& change) {
  return std::span(history.compared).subspan(change.begin, change.end - change.begin);
}

// The medians of the phases. If a run does not have a phase, the phase counts as 0.
std::map<std::string, double> median_phases(const History& history,
                                            std::span<const std::size_t> runs) {
  std::map<std::string, std::vector<double>> all;
  for (const std::size_t i : runs) {
    for (const auto& [name, duration_ns] : history.runs[i].phases) {
      all[name].push_back(static_cast<double>(duration_ns));
    }
  }
  std::map<std::string, double> medians;
  for (auto& [name, values] : all) {
    values.resize(runs.size(), 0);
    medians[name] = analysis::median(std::move(values));
  }
  return medians;
}

// Where these values of the compared runs changed, if that is not where the change was found.
std::optional<std::size_t> own_place(const analysis::Change& change,
                                     const std::vector<double>& values) {
  constexpr double kAllowedP = 0.05;
  const bool of_all = values.size() == change.end - change.begin;
  if (!of_all || analysis::cut_test(values).p >= kAllowedP) return std::nullopt;
  const std::size_t at = change.begin + analysis::closest_cut(values);
  return at == change.at ? std::nullopt : std::optional(at);
}

std::vector<HistoryMove> phases_that_moved(const History& history, const analysis::Change& change) {
  std::map<std::string, HistoryMove> moves;
  for (const auto& [name, ns] : median_phases(history, side(history, change, false))) {
    moves[name].before = ns;
  }
  for (const auto& [name, ns] : median_phases(history, side(history, change, true))) {
    moves[name].after = ns;
  }
  std::vector<HistoryMove> sorted;
  for (auto& [name, move] : moves) {
    move.name = name;
    move.phase = true;
    sorted.push_back(move);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const HistoryMove& a, const HistoryMove& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return sorted;
}

// Whether this state was looked at in each of these runs. Of CRIU's states an older kymod left out those that were
// short, so there one of them is enough. It did not look at those of kymod and of the target.
bool all_have(const std::string& state, const History& history, std::span<const std::size_t> runs) {
  const bool of_criu = state.starts_with(kCriu);
  return std::all_of(runs.begin(), runs.end(), [&](std::size_t i) {
    const auto& phases = history.runs[i].phases;
    return std::any_of(phases.begin(), phases.end(), [&](const auto& phase) {
      return of_criu ? is_state(phase.first) : phase.first == state;
    });
  });
}

// The change that went most in the direction of a whole change of `whole_ns`. Null if none made a
// quarter of it.
const HistoryMove* largest(const std::vector<HistoryMove>& moves, double whole_ns) {
  constexpr double kMinShare = 0.25;
  const HistoryMove* most = nullptr;
  double share_of_most = kMinShare;
  for (const HistoryMove& move : moves) {
    const double share = (move.after - move.before) / whole_ns;
    if (share < share_of_most) continue;
    most = &move;
    share_of_most = share;
  }
  return most;
}

std::string moved(const HistoryMove& move) {
  const double change = move.after - move.before;
  return duration(move.after) + " after " + duration(move.before) + " (" +
         (change > 0 ? "+" : "-") + duration(std::abs(change)) + ")";
}

// "kymod waited for the disk" of "kymod: waited for the disk".
std::string sentence_of(std::string state) {
  if (const std::size_t colon = state.find(':'); colon != std::string::npos) state.erase(colon, 1);
  if (state.starts_with("target")) state.insert(0, "The ");
  if (state.starts_with("no ")) state.front() = 'N';
  if (state.starts_with("a ")) state.front() = 'A';
  return state;
}

// Of a change of a time only.
std::vector<std::string> because_of(const HistoryChange& change) {
  const auto whole =
      std::find_if(change.metrics.begin(), change.metrics.end(),
                   [](const HistoryMove& move) { return move.metric == HistoryMetric::duration; });
  if (whole == change.metrics.end() || whole->after == whole->before) return {};
  const double whole_ns = whole->after - whole->before;
  std::vector<std::string> lines;
  if (const HistoryMove* const phase = largest(change.phases, whole_ns)) {
    const bool most = (phase->after - phase->before) / whole_ns > 0.5;
    lines.push_back(std::string(most ? "Most of it: " : "The largest part: ") + phase->name + ", " +
                    moved(*phase) + ".");
  }
  if (const HistoryMove* const state = largest(change.states, whole_ns)) {
    lines.push_back(sentence_of(state->name) + " for " + moved(*state) + ".");
  }
  return lines;
}

HistoryChange describe(const History& history, const analysis::Change& found) {
  HistoryChange change;
  change.found = found;
  for (const HistoryMetric metric : kHistoryMetrics) {
    HistoryMove move;
    move.name = name_of(metric);
    move.metric = metric;
    move.before = analysis::median(values_in(history, side(history, found, false), metric));
    move.after = analysis::median(values_in(history, side(history, found, true), metric));
    move.at = own_place(found, values_in(history, both_sides(history, found), metric));
    if (metric == history.options.metric) {
      change.ratio = move.after / std::max(move.before, 1.0);
      change.worse = (move.after - move.before) * worse_sign(metric) > 0;
    }
    if (move.before != 0 || move.after != 0) {
      change.metrics.push_back(std::move(move));
    }
  }
  for (HistoryMove& move : phases_that_moved(history, found)) {
    if (!is_state(move.name)) {
      if (change.phases.size() < kMovedPhases) {
        move.at = own_place(found, phase_in(history, both_sides(history, found), move.name));
      }
      change.phases.push_back(std::move(move));
    } else if (all_have(move.name, history, side(history, found, false)) &&
               all_have(move.name, history, side(history, found, true))) {
      change.states.push_back(std::move(move));
    }
  }
  change.because = because_of(change);
  return change;
}

// The compared runs [begin, end) that the newest is held against.
struct Baseline {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::optional<std::size_t> since;  // begin, if the level changed there
};

// The runs before `newest` that have the level of the last step. A step for the worse with too few runs since does not
// count yet: the newest runs are part of what it found, and are compared with the level before it.
Baseline baseline_of(const std::vector<HistoryChange>& changes, std::size_t newest) {
  Baseline baseline{0, newest, {}};
  for (const HistoryChange& change : changes) {
    const std::size_t at = change.found.at;
    if (change.found.drift || at > newest || (at == newest && !change.worse)) continue;
    if (change.worse && newest - at < kMinBaseline) {
      baseline.end = at;
      break;
    }
    baseline.begin = at;
    baseline.since = at;
  }
  if (baseline.end - baseline.begin > kMaxBaseline) {
    baseline = {baseline.end - kMaxBaseline, baseline.end, {}};
  }
  return baseline;
}

// How far noise moves a median of `runs`, as a part of how far it moves one run. For a normal distribution the deviation
// of a median is sqrt(pi / 2 / runs) of that of a run, as `runs` grows; it is below this for few.
double deviation_of_median(std::size_t runs) {
  return std::min(1.0, std::sqrt(std::numbers::pi / 2 / static_cast<double>(runs)));
}

HistoryVerdict judge(const History& history, const std::vector<double>& values) {
  const HistoryOptions& options = history.options;
  HistoryVerdict verdict;
  const std::size_t newest = std::min(std::max<std::size_t>(options.newest, 1), values.size());
  const Baseline compared = baseline_of(history.changes, values.size() - newest);
  verdict.since = compared.since;
  if (compared.end - compared.begin < kMinBaseline) {
    return verdict;
  }
  verdict.baseline = compared.end - compared.begin;
  const std::span<const double> all(values);
  const auto before = all.subspan(compared.begin, verdict.baseline);
  const auto after = all.last(newest);
  const std::vector<double> baseline(before.begin(), before.end());
  verdict.before = analysis::median(baseline);
  verdict.newest = analysis::median({after.begin(), after.end()});
  // With logarithms, twice as fast and twice as slow are equally far away.
  const std::vector<double> logs = logarithms(baseline);
  const double shift = (std::log(std::max(verdict.newest, 1.0)) - analysis::median(logs)) *
                       worse_sign(options.metric);
  const double noise = kNoiseDeviations * analysis::scaled_mad(logs) * deviation_of_median(newest);
  verdict.worse_by = std::exp(shift) - 1;
  verdict.noise = std::exp(noise) - 1;
  verdict.regression = verdict.worse_by > *options.allowed_regression && shift > noise;
  verdict.too_noisy = !verdict.regression && verdict.noise > *options.allowed_regression;
  return verdict;
}

}  // namespace

bool is_state(std::string_view name) {
  return name.starts_with(kCriu) || diagnosis::is_state(name);
}

std::string_view name_of(HistoryMetric metric) {
  switch (metric) {
    case HistoryMetric::duration:
      return "duration";
    case HistoryMetric::frozen:
      return "frozen";
    case HistoryMetric::bytes:
      return "bytes";
    case HistoryMetric::throughput:
      break;
  }
  return "throughput";
}

std::optional<double> value_of(const HistoryRun& run, HistoryMetric metric) {
  switch (metric) {
    case HistoryMetric::duration:
      return run.duration_ns == 0 ? std::nullopt : std::optional<double>(run.duration_ns);
    case HistoryMetric::frozen:
      return run.stood_still_ns ? std::optional<double>(*run.stood_still_ns) : std::nullopt;
    case HistoryMetric::bytes:
      return run.image_bytes == 0 ? std::nullopt : std::optional<double>(run.image_bytes);
    case HistoryMetric::throughput:
      break;
  }
  if (run.image_bytes == 0 || run.duration_ns == 0) {
    return std::nullopt;
  }
  return rate_per_second(static_cast<double>(run.image_bytes), run.duration_ns);
}

History analyse_history(std::vector<HistoryRun> runs, const HistoryOptions& options) {
  History history;
  history.options = options;
  history.runs = std::move(runs);
  compare(history);
  for (const HistoryMetric metric : kHistoryMetrics) {
    if (const std::vector<double> values = values_in(history, history.compared, metric);
        !values.empty()) {
      history.levels.push_back(level_of(metric, values));
    }
  }
  const std::vector<double> values = values_in(history, history.compared, options.metric);
  for (const analysis::Change& found : analysis::find_changes(logarithms(values))) {
    history.changes.push_back(describe(history, found));
  }
  if (options.allowed_regression) {
    history.verdict = judge(history, values);
  }
  return history;
}

}  // namespace kymo::report
