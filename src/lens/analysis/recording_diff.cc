#include "lens/analysis/recording_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include "base/near_names.h"
#include "lens/analysis/diff_tests.h"
#include "lens/analysis/diff_totals.h"
#include "lens/analysis/diff_windows.h"
#include "lens/analysis/joined_parts.h"
#include "lens/analysis/quality.h"
#include "lens/analysis/quantile_blocks.h"
#include "lens/analysis/robust.h"

namespace kymo::analysis {
namespace {

using DiffVerdict = MetricDiff::Verdict;

constexpr std::uint64_t kMaxBlocks = 256;
constexpr std::uint64_t kRowsABlock = 4;
using AllValues = std::map<std::pair<bool, std::string>, DiffValues>;

bool is_named(const DiffOptions& options, const std::string& name) {
  return std::find(options.metrics.begin(), options.metrics.end(), name) != options.metrics.end();
}

// `inner`: it is a bucket or the sum of a histogram, of which the quantiles are compared.
bool is_wanted(const ColumnInfo& column, bool inner, const DiffOptions& options) {
  constexpr const char* kRecordersOwn = "profiler_";
  if (options.metrics.empty()) return !inner && column.name.rfind(kRecordersOwn, 0) != 0;
  return is_named(options, column.name) || (!inner && is_named(options, column.metric));
}

bool is_total_named(const ColumnInfo& column, const DiffOptions& options) {
  return column.kind == Kind::counter && is_named(options, total_name(column.name));
}

std::string quantile_name(const HistogramColumns& histogram, const QuantileName& quantile) {
  return histogram.metric + ' ' + quantile.name;
}

std::string mean_name(const std::string& histogram) {
  return histogram + " mean";
}

std::uint64_t block_length(const std::vector<DiffRun*>& runs) {
  std::uint64_t window = UINT64_MAX;
  std::uint64_t blocks = kMaxBlocks;
  for (const DiffRun* run : runs) {
    window = std::min(window, run->window.length_ns());
    const std::uint64_t row_ns =
        run->summary.duration_ns() / std::max<std::uint64_t>(run->summary.rows - 1, 1);
    const std::uint64_t rows = run->window.length_ns() / std::max<std::uint64_t>(row_ns, 1);
    blocks = std::clamp<std::uint64_t>(rows / kRowsABlock, 1, blocks);
  }
  return std::max<std::uint64_t>(window / blocks, 1);
}

void add_phases(const DiffRun& run, std::size_t side, const DiffOptions& options, AllValues& all) {
  if (!run.summary.recording.metadata) return;
  const std::vector<Mark>& marks = run.summary.recording.metadata->marks;
  std::map<std::string, double> lasts;  // phases of the same name add up
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    lasts[marks[i].name] += static_cast<double>(marks[i + 1].at_ns - marks[i].at_ns);
  }
  for (const auto& [name, ns] : lasts) {
    if (!options.metrics.empty() && !is_named(options, "phase: " + name)) continue;
    DiffValues& values = all[{true, name}];
    values.phase = true;
    values.unit = Unit::nanoseconds;
    values.means.at(side).push_back(ns);
  }
}

void add_histograms(const std::vector<HistogramBlocks>& histograms, std::size_t side,
                    const DiffOptions& options, AllValues& all) {
  for (const HistogramBlocks& histogram : histograms) {
    const std::uint64_t count = histogram.values();
    const auto add = [&](const std::string& name) -> DiffValues* {
      if (!options.metrics.empty() && !is_named(options, name) &&
          !is_named(options, histogram.columns.metric)) {
        return nullptr;
      }
      DiffValues& values = all[{false, name}];
      values.histogram = histogram.columns.metric;
      values.unit = histogram.columns.unit;
      return &values;
    };
    if (DiffValues* const values = add(mean_name(histogram.columns.metric))) {
      values->values_a_block = kValuesAMean;
      values->blocks.at(side) = means_of_pieces(histogram);
      if (count != 0) values->means.at(side).push_back(histogram.sum / static_cast<double>(count));
    }
    for (const QuantileName& compared : kComparedQuantiles) {
      DiffValues* const values = add(quantile_name(histogram.columns, compared));
      if (values == nullptr) continue;
      values->quantile = compared.share;
      values->values_a_block = values_needed(compared.share);
      values->blocks.at(side) = quantiles_of_pieces(histogram, compared.share);
      if (count == 0) continue;  // no quantile
      const std::vector<std::uint64_t>& bounds = histogram.columns.bounds;
      values->means.at(side).push_back(quantile(bounds, histogram.all, compared.share));
      values->buckets.at(side).push_back(bucket_of_quantile(bounds, histogram.all, compared.share));
    }
  }
}

// Whether each column is a bucket or the sum of a histogram.
std::vector<bool> inner_columns(const std::vector<HistogramBlocks>& histograms,
                                std::size_t columns) {
  std::vector<bool> inner(columns);
  for (const HistogramBlocks& histogram : histograms) {
    for (const std::size_t bucket : histogram.columns.buckets) inner[bucket] = true;
    inner[histogram.columns.sum] = true;
  }
  return inner;
}

// What is missing of a recording that was rotated. Empty: nothing.
std::string missing_parts(const Recording& recording) {
  if (!recording.metadata) return {};
  if (recording.parts.empty()) return part_sentence(*recording.metadata, 0, recording.path);
  const auto said = std::find_if(recording.notes.begin(), recording.notes.end(), is_part_sentence);
  return said == recording.notes.end() ? std::string() : *said;
}

Result<void> add_run(const DiffRun& run, std::size_t side, std::uint64_t block_ns,
                     const DiffOptions& options, AllValues& all, RecordingDiff& diff) {
  std::vector<std::string>& notes = diff.notes;
  auto blocks = read_blocks(run.summary, run.window, block_ns);
  if (!blocks) return blocks.error();
  const std::vector<HistogramBlocks> histograms = histogram_blocks(run.summary.columns, *blocks);
  add_histograms(histograms, side, options, all);
  const std::vector<bool> inner = inner_columns(histograms, blocks->size());
  for (std::size_t i = 0; i < run.summary.columns.size(); ++i) {
    const ColumnInfo& info = run.summary.columns[i].info;
    const bool wanted = is_wanted(info, inner[i], options);
    const bool total_named = is_total_named(info, options);
    if (!wanted && !total_named) continue;
    const auto [found, made] = all.try_emplace({false, info.name});
    DiffValues& values = found->second;
    if (made) {
      values.kind = info.kind;
      values.unit = info.unit;
      values.total_named = total_named;
      values.only_total = !wanted;
    } else if (values.kind != info.kind || values.unit != info.unit) {
      notes.push_back(
          run.summary.recording.path + " has another kind or unit of " + in_quotes(info.name, 64) +
          (info.described ? "" : ", which no metadata describes") + ": it is left out there");
      continue;
    }
    values.means.at(side).push_back((*blocks)[i].mean);
    values.growths.at(side).push_back((*blocks)[i].growth);
    values.most_rises = std::max(values.most_rises, (*blocks)[i].rises);
    // A counter that seldom grows may do so only at the end of the request.
    if (run.summary.recording.finish != Finish::ended && (*blocks)[i].rises < kMinMoves) {
      values.not_known_yet = info.kind == Kind::counter;
    }
    values.blocks.at(side) = std::move((*blocks)[i].values);
  }
  add_phases(run, side, options, all);
  for (const std::string& sentence : run.summary.left_out.sentences()) {
    notes.push_back(run.summary.recording.path + ", " + sentence);
  }
  // Without metadata, the first note says why. The other notes (such as a missing list of gaps) do
  // not matter for a comparison.
  const Recording& recording = run.summary.recording;
  if (!recording.metadata && !recording.notes.empty()) {
    notes.push_back(recording.path + ": " + recording.notes.front());
  }
  if (const std::string miss = large_miss(run.summary); !miss.empty()) {
    notes.push_back(recording.path + ": " + miss +
                    ", so a difference may come from the ticks that are missing");
  }
  if (const std::string part = missing_parts(recording); !part.empty()) {
    diff.broken.push_back(recording.path + ": " + part);
    notes.push_back(recording.path + ": " + part + "; it is compared as a run of its own");
  }
  if (!recording.metadata) {
    diff.broken.push_back(recording.path +
                          ": it has no metadata, which say whether it is whole and what it counts");
  }
  for (const std::string& what : what_is_missing(run.summary, options.metrics)) {
    diff.broken.push_back(recording.path + ": " + what);
  }
  return {};
}

// Of a quantile: what its buckets can tell.
void describe_buckets(const DiffValues& values, MetricDiff& diff) {
  std::array<bool, 2> any{};
  for (const std::size_t side : {0U, 1U}) {
    std::vector<BucketRange> buckets = values.buckets.at(side);
    if (buckets.empty()) continue;
    std::sort(buckets.begin(), buckets.end(),
              [](const BucketRange& a, const BucketRange& b) { return a.low < b.low; });
    any.at(side) = buckets.back().is_last;
    // Of an even number of runs, the median is between two.
    diff.above_last.at(side) = buckets[buckets.size() / 2].is_last;
    diff.in_first.at(side) = buckets[(buckets.size() - 1) / 2].is_first;
  }
  diff.unbounded = any[0] || any[1];
  if (!diff.unbounded) return;
  diff.reason = std::string("above the last bucket ") +
                (any[0] && any[1] ? "in A and B"
                 : any[0]         ? "in A"
                                  : "in B") +
                ": see its mean, or give the histogram a higher last bound";
}

double median_of(const std::vector<BucketRange>& buckets, double BucketRange::*end) {
  std::vector<double> ends;
  for (const BucketRange& bucket : buckets) ends.push_back(bucket.*end);
  return median(ends);
}

// No interval is narrower than the buckets. No value is below 0, so none can fall by more than 100 %. But
// the median of the differences between single values can be lower than that, so it is cut off there.
void limit_shift(const MetricDiff& diff, Shift& shift) {
  if (diff.in_buckets) {
    shift.low = std::min(shift.low, diff.in_buckets->low);
    shift.high = std::max(shift.high, diff.in_buckets->high);
  }
  if (!diff.before) return;
  for (double* const one : {&shift.median, &shift.low, &shift.high}) {
    *one = std::max(*one, -*diff.before);
  }
}

// A bucket does not tell where in it the values are. So a quantile that stays in its bucket has not
// changed as far as anybody can tell.
void apply_resolution(const DiffValues& values, MetricDiff& diff) {
  const auto& [before, after] = values.buckets;
  if (before.empty() || after.empty() || diff.unbounded) return;
  diff.in_buckets = {median_of(after, &BucketRange::low) - median_of(before, &BucketRange::high),
                     median_of(after, &BucketRange::high) - median_of(before, &BucketRange::low)};
  limit_shift(diff, diff.shift);
  const auto is_first = [&first = before.front()](const BucketRange& bucket) {
    return bucket == first;
  };
  diff.one_bucket = std::all_of(before.begin(), before.end(), is_first) &&
                    std::all_of(after.begin(), after.end(), is_first);
  if (diff.one_bucket && diff.verdict != DiffVerdict::not_told) diff.verdict = DiffVerdict::none;
  // Most runs of both sides are in one bucket: the values may have gone either way.
  if (diff.verdict == DiffVerdict::changed && diff.shift.low < 0 && diff.shift.high > 0) {
    diff.verdict = DiffVerdict::not_told;
    diff.reason = "its buckets are wider than the change: see its mean";
  }
}

MetricDiff compare_one(const std::string& name, DiffValues& values, std::uint64_t block_ns,
                       const RecordingDiff& diff) {
  MetricDiff metric;
  // The rate of an event that happens only a few times means nothing: compare its growth.
  metric.events = !values.phase && values.kind == Kind::counter && values.most_rises != 0 &&
                  values.most_rises < kMinMoves;
  if (metric.events) values.means = values.growths;
  metric.phase = values.phase;
  metric.quantile = values.quantile != 0;
  metric.histogram = values.histogram;
  metric.name = name;
  metric.kind = values.kind;
  metric.unit = values.unit;
  if (!values.means[0].empty()) metric.before = median(values.means[0]);
  if (!values.means[1].empty()) metric.after = median(values.means[1]);
  describe_buckets(values, metric);
  if (!metric.before && !metric.after) {
    metric.reason = "no recording has a value of it";
  } else if (!metric.before || !metric.after) {
    metric.verdict = DiffVerdict::one_sided;
  } else if (values.not_known_yet) {
    metric.not_known_yet = true;
    metric.reason = "a recording is unfinished: what it counts may come later";
  } else if (metric.unbounded) {
    // `reason` says why there is no test.
  } else if (diff.by_runs) {
    test_runs(values.means[0], values.means[1], diff.margin, metric);
  } else {
    test_blocks(values, block_ns, diff.margin, metric);
  }
  return metric;
}

// The totals of the counters whose rates are compared: only then do rates not tell them.
void add_totals(const AllValues& all, RecordingDiff& diff) {
  std::vector<MetricDiff> totals;
  for (const auto& [key, values] : all) {
    const bool growth_is_compared = values.most_rises < kMinMoves || values.total_named;
    if (values.phase || values.kind != Kind::counter || growth_is_compared ||
        values.not_known_yet) {
      continue;
    }
    MetricDiff total = compare_totals(key.second, values, diff);
    if (!total.tells_nothing) totals.push_back(std::move(total));
  }
  diff.tested_totals = correct(totals, diff.by_runs);
  diff.metrics.insert(diff.metrics.end(), totals.begin(), totals.end());
}

std::string column_of(const MetricDiff& metric) {
  const std::size_t suffix = metric.total ? total_name("").size() : 0;
  return metric.name.substr(0, metric.name.size() - suffix);
}

// By verdict; then the length, the totals that changed, and the largest change.
void sort_metrics(std::vector<MetricDiff>& metrics) {
  const auto rank = [](const MetricDiff& metric) {
    if (metric.length) return 0;
    return metric.total && metric.verdict == DiffVerdict::changed ? 1 : 2;
  };
  const auto size = [](const MetricDiff& metric) {
    return std::abs(metric.share().value_or(std::numeric_limits<double>::infinity()));
  };
  std::stable_sort(metrics.begin(), metrics.end(), [&](const MetricDiff& a, const MetricDiff& b) {
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return size(a) > size(b);
  });
}

void compare_all(AllValues& all, std::uint64_t block_ns, const DiffOptions& options,
                 RecordingDiff& diff) {
  for (auto& [key, values] : all) {
    // A histogram without a value has no quantile. Who asked for it by name is told.
    const bool no_value = values.means[0].empty() && values.means[1].empty();
    if (no_value && !is_named(options, key.second)) continue;
    if (values.total_named) diff.metrics.push_back(compare_totals(key.second, values, diff));
    if (!values.only_total) {
      diff.metrics.push_back(compare_one(key.second, values, block_ns, diff));
    }
  }
  // With --to the user chose the length, and with --align it is the duration of a phase.
  const bool length_is_free = !options.to_s && options.align.empty();
  MetricDiff length = compare_lengths(diff);
  const bool length_named = is_named(options, kLengthName);
  const bool length_matters = length_is_free && options.metrics.empty() && !length.tells_nothing &&
                              length.verdict != DiffVerdict::the_same;
  if (length_named || length_matters) diff.metrics.push_back(length);
  diff.tested = correct(diff.metrics, diff.by_runs);
  diff.runs_needed = runs_needed(static_cast<std::size_t>(
      std::count_if(diff.metrics.begin(), diff.metrics.end(), [](const MetricDiff& metric) {
        return metric.verdict != DiffVerdict::the_same && metric.verdict != DiffVerdict::one_sided;
      })));
  if (length_named || length_matters) {
    length = *std::find_if(diff.metrics.begin(), diff.metrics.end(),
                           [](const MetricDiff& metric) { return metric.length; });
  } else {
    std::vector<MetricDiff> alone{length};
    static_cast<void>(correct(alone, diff.by_runs));
    length = alone.front();
  }
  diff.lengths_differ = length_is_free && length.verdict != DiffVerdict::the_same;
  if (!options.to_s && totals_are_needed(length, diff)) add_totals(all, diff);
  for (MetricDiff& metric : diff.metrics) {
    const bool column = !metric.phase && !metric.length && metric.histogram.empty();
    metric.others = options.metrics.empty() && column && counts_others(column_of(metric));
    metric.named = is_named(options, metric.name);
    if (metric.quantile) apply_resolution(all.at({false, metric.name}), metric);
    limit_shift(metric, metric.shift);
    if (!diff.by_runs) metric.between_runs = diff.margin;
    // Who asked for it by name is told why it is not compared.
    if (!options.metrics.empty()) metric.tells_nothing = false;
  }
  sort_metrics(diff.metrics);
}

// A recording that counted as two runs would make a change seem certain, and one on both sides would hide it.
Result<void> check_named_once(const std::vector<std::string>& before,
                              const std::vector<std::string>& after) {
  std::vector<std::string> paths = before;
  paths.insert(paths.end(), after.begin(), after.end());
  if (paths.size() == 2) return {};  // whoever compares a recording with itself sees that
  std::map<std::string, std::string> seen;
  for (const std::string& path : paths) {
    std::error_code unknown;
    const std::string real = std::filesystem::weakly_canonical(path, unknown).string();
    const auto [first, is_new] = seen.try_emplace(unknown ? path : real, path);
    if (is_new) continue;
    return Error{Code::invalid_argument,
                 "compare " + path + ": it is named twice" +
                     (first->second == path ? "" : ", also as " + first->second) +
                     ": name each recording once"};
  }
  return {};
}

Result<std::vector<DiffRun>> read_runs(const std::vector<std::string>& paths) {
  std::vector<DiffRun> runs;
  for (const std::vector<std::string>& parts : join_parts(paths)) {
    auto summary = summarize(parts);
    if (!summary) return summary.error();
    if (summary->rows < 2) {
      return Error{Code::invalid_argument, "compare " + parts.front() + ": it holds " +
                                               std::to_string(summary->rows) +
                                               (summary->rows == 1 ? " row" : " rows")};
    }
    runs.push_back({std::move(summary).value(), 0, {}});
  }
  return runs;
}

// Every requested metric must exist. Otherwise a misspelt name among others would go unnoticed.
Result<void> find_all_named(const std::vector<DiffRun*>& runs, const DiffOptions& options) {
  std::set<std::string> names{kLengthName};
  for (const DiffRun* run : runs) {
    std::vector<ColumnInfo> infos;
    for (const ColumnSummary& column : run->summary.columns) {
      names.insert({column.info.name, column.info.metric});
      if (column.info.kind == Kind::counter) names.insert(total_name(column.info.name));
      infos.push_back(column.info);
    }
    for (const HistogramColumns& histogram : find_histograms(infos)) {
      names.insert({histogram.metric, mean_name(histogram.metric)});
      for (const QuantileName& compared : kComparedQuantiles) {
        names.insert(quantile_name(histogram, compared));
      }
    }
    if (!run->summary.recording.metadata) continue;
    for (const Mark& mark : run->summary.recording.metadata->marks) {
      names.insert("phase: " + mark.name);
    }
  }
  for (const std::string& name : options.metrics) {
    if (names.contains(name)) continue;
    return Error{Code::invalid_argument, "compare the metric " + in_quotes(name, 64) +
                                             ": no recording has it" +
                                             did_you_mean(name, {names.begin(), names.end()})};
  }
  return {};
}

}  // namespace

std::optional<double> MetricDiff::share() const {
  if (!before || !after || unbounded) return {};
  const double change = samples_before != 0 ? shift.median : *after - *before;
  if (*before != 0) return change / *before;
  if (change == 0) return 0;
  return {};
}

std::optional<MetricDiff::Interval> MetricDiff::as_shares(const Interval& of_shifts) const {
  if (unbounded || !before || !after) return {};
  if (*before != 0) {
    return Interval{of_shifts.low / *before - between_runs,
                    of_shifts.high / *before + between_runs};
  }
  if (of_shifts.low <= 0) return {};
  return Interval{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
}

std::optional<MetricDiff::Interval> MetricDiff::interval() const {
  if (verdict == DiffVerdict::the_same && reason.empty()) return Interval{};
  const bool same_bucket = one_bucket && reason.empty();  // the same value in all runs, too
  if (samples_before == 0 && !same_bucket) return {};
  return as_shares({shift.low, shift.high});
}

std::optional<MetricDiff::Interval> MetricDiff::interval_at(std::size_t runs_each) const {
  if (runs[0].empty() || runs[1].empty()) return {};
  Shift then = shift_at_size(runs[0], runs[1], runs_each);
  limit_shift(*this, then);
  return as_shares({then.low, then.high});
}

std::optional<MetricDiff::Interval> MetricDiff::least_interval() const {
  return in_buckets ? as_shares(*in_buckets) : std::nullopt;
}

Result<RecordingDiff> diff_recordings(const std::vector<std::string>& before,
                                      const std::vector<std::string>& after,
                                      const DiffOptions& options) {
  RecordingDiff diff;
  if (Result<void> once = check_named_once(before, after); !once) return once.error();
  auto runs_before = read_runs(before);
  if (!runs_before) return runs_before.error();
  auto runs_after = read_runs(after);
  if (!runs_after) return runs_after.error();
  diff.before = std::move(runs_before).value();
  diff.after = std::move(runs_after).value();
  std::vector<DiffRun*> runs;
  for (DiffRun& run : diff.before) runs.push_back(&run);
  for (DiffRun& run : diff.after) runs.push_back(&run);
  if (const auto found = find_all_named(runs, options); !found) return found.error();
  for (const DiffRun* run : runs) {
    const Recording& recording = run->summary.recording;
    if (recording.finish != Finish::ended) {
      diff.unfinished = true;
      diff.notes.push_back(recording.path + ": " +
                           sentence_of(recording.finish, *recording.metadata));
    }
  }
  const Result<Aligned> aligned = align_runs(runs, options);
  if (!aligned) return aligned.error();
  diff.aligned_at = aligned->at;
  diff.until = aligned->until;
  diff.by_runs = runs.size() > 2;
  diff.margin = options.margin.value_or(diff.by_runs ? 0 : kPairMargin);
  const std::uint64_t block_ns = block_length(runs);
  AllValues all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t side = i < diff.before.size() ? 0U : 1U;
    auto added = add_run(*runs[i], side, block_ns, options, all, diff);
    if (!added) return added.error();
  }
  if (all.empty() && !is_named(options, kLengthName)) {
    return Error{Code::invalid_argument, "compare " + before.front() + " with " + after.front() +
                                             ": neither has a metric that was asked for"};
  }
  compare_all(all, block_ns, options, diff);
  return diff;
}

const char* to_string(MetricDiff::Verdict verdict) {
  switch (verdict) {
    case DiffVerdict::changed:
      return "changed";
    case DiffVerdict::none:
      return "no change";
    case DiffVerdict::not_told:
      return "cannot be told";
    case DiffVerdict::one_sided:
      return "on one side only";
    case DiffVerdict::the_same:
      return "the same";
  }
  return "";
}

}  // namespace kymo::analysis
