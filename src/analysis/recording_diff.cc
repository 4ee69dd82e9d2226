#include "analysis/recording_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/diff_windows.h"
#include "analysis/quality.h"
#include "analysis/quantile_blocks.h"
#include "analysis/robust.h"
#include "base/holm.h"
#include "base/near_names.h"

namespace kymo::analysis {
namespace {

using DiffVerdict = MetricDiff::Verdict;

constexpr std::uint64_t kMaxBlocks = 256;
constexpr std::uint64_t kRowsABlock = 4;
// With fewer blocks, a test has almost no power. With Holm's correction, it needs even more.
constexpr std::size_t kMinBlocks = 10;
// Events that are rarer than this have no noise that a change can be compared with.
constexpr std::size_t kMinMoves = 5;
constexpr double kPairMargin = 0.05;
// A difference of this share is shown even if it cannot be tested, unless the metric hardly moves.
constexpr double kLargeDifference = 0.1;
// 1 + kLengthsABlock * (L - 1) neighbouring blocks become one, where L is their correlation length.
// This leaves a correlation of 0.05 between the new neighbours.
constexpr double kLengthsABlock = 4;

// The values of one metric, or of one phase's duration, on both sides.
struct Values {
  bool phase = false;
  double quantile = 0;             // of a histogram; 0: it is none
  std::string histogram;           // of which it is the mean or a quantile; empty: none
  std::size_t values_a_block = 0;  // of a histogram: in each of `blocks`, at least
  std::array<std::vector<BucketRange>, 2> buckets;  // in which a quantile lies, one for each run
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  std::array<std::vector<double>, 2> means;    // one for each run
  std::array<std::vector<double>, 2> blocks;   // of the last run, used if it is the only one
  std::array<std::vector<double>, 2> growths;  // of a counter, one for each run
  std::uint64_t most_rises = 0;                // rows in which it grew, maximum over all runs
  bool not_known_yet = false;                  // an unfinished run may have ended before it grew
};
using AllValues = std::map<std::pair<bool, std::string>, Values>;

bool is_named(const DiffOptions& options, const std::string& name) {
  return std::find(options.metrics.begin(), options.metrics.end(), name) != options.metrics.end();
}

// `inner`: it is a bucket or the sum of a histogram, of which the quantiles are compared.
bool is_wanted(const ColumnInfo& column, bool inner, const DiffOptions& options) {
  constexpr const char* kRecordersOwn = "profiler_";
  if (options.metrics.empty()) return !inner && column.name.rfind(kRecordersOwn, 0) != 0;
  return is_named(options, column.name) || (!inner && is_named(options, column.metric));
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
    Values& values = all[{true, name}];
    values.phase = true;
    values.unit = Unit::nanoseconds;
    values.means.at(side).push_back(ns);
  }
}

void add_histograms(const std::vector<HistogramBlocks>& histograms, std::size_t side,
                    const DiffOptions& options, AllValues& all) {
  for (const HistogramBlocks& histogram : histograms) {
    const std::uint64_t count = histogram.values();
    const auto add = [&](const std::string& name) -> Values* {
      if (!options.metrics.empty() && !is_named(options, name) &&
          !is_named(options, histogram.columns.metric)) {
        return nullptr;
      }
      Values& values = all[{false, name}];
      values.histogram = histogram.columns.metric;
      values.unit = histogram.columns.unit;
      return &values;
    };
    if (Values* const values = add(mean_name(histogram.columns.metric))) {
      values->values_a_block = kValuesAMean;
      values->blocks.at(side) = means_of_pieces(histogram);
      if (count != 0) values->means.at(side).push_back(histogram.sum / static_cast<double>(count));
    }
    for (const QuantileName& compared : kComparedQuantiles) {
      Values* const values = add(quantile_name(histogram.columns, compared));
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

Result<void> add_run(const DiffRun& run, std::size_t side, std::uint64_t block_ns,
                     const DiffOptions& options, AllValues& all, std::vector<std::string>& notes) {
  auto blocks = read_blocks(run.summary, run.window, block_ns);
  if (!blocks) return blocks.error();
  const std::vector<HistogramBlocks> histograms = histogram_blocks(run.summary.columns, *blocks);
  add_histograms(histograms, side, options, all);
  const std::vector<bool> inner = inner_columns(histograms, blocks->size());
  for (std::size_t i = 0; i < run.summary.columns.size(); ++i) {
    const ColumnInfo& info = run.summary.columns[i].info;
    if (!is_wanted(info, inner[i], options)) continue;
    const auto [found, made] = all.try_emplace({false, info.name});
    Values& values = found->second;
    if (made) {
      values.kind = info.kind;
      values.unit = info.unit;
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
  if (recording.metadata) {
    if (const std::string part = part_sentence(*recording.metadata); !part.empty()) {
      notes.push_back(recording.path + ": " + part + "; it is compared as a run of its own");
    }
  }
  return {};
}

bool all_equal(const std::vector<double>& a, const std::vector<double>& b) {
  const auto equal = [&](double value) { return value == a.front(); };
  return std::all_of(a.begin(), a.end(), equal) && std::all_of(b.begin(), b.end(), equal);
}

std::vector<double> merged(const std::vector<double>& values, std::size_t neighbours) {
  std::vector<double> out;
  for (std::size_t i = 0; i + neighbours <= values.size(); i += neighbours) {
    double sum = 0;
    for (std::size_t k = i; k < i + neighbours; ++k) sum += values[k];
    out.push_back(sum / static_cast<double>(neighbours));
  }
  return out;
}

// How many values differ from the median.
std::size_t moved(const std::vector<double>& values) {
  const double still = median(values);
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value != still; }));
}

// Whether more than a quarter of the values equal the median. False if all do, because then the
// metric is idle on that side.
bool seldom_moves(const std::vector<double>& values) {
  const std::size_t moves = moved(values);
  return moves != 0 && 4 * moves < 3 * values.size();
}

void test(const std::vector<double>& before, const std::vector<double>& after, double margin,
          MetricDiff& diff) {
  diff.samples_before = before.size();
  diff.samples_after = after.size();
  diff.shift = shift_between(before, after);
  diff.p = mann_whitney_p(before, after, margin);
  diff.verdict = DiffVerdict::none;
}

void test_blocks(const Values& values, std::uint64_t block_ns, double margin, MetricDiff& diff) {
  const auto& [before, after] = values.blocks;
  if (values.phase) {
    diff.reason = "one run on each side";
    return;
  }
  if (values.values_a_block != 0 && std::min(before.size(), after.size()) < kMinBlocks) {
    diff.verdict = diff.before == diff.after ? DiffVerdict::the_same : DiffVerdict::not_told;
    diff.reason = "too few values: " + std::to_string(before.size()) + " and " +
                  std::to_string(after.size()) + " of " + std::to_string(kMinBlocks) +
                  " blocks of " + std::to_string(values.values_a_block) + " values";
    return;
  }
  const std::optional<double> length_before = correlation_length(before);
  const std::optional<double> length_after = correlation_length(after);
  if (!length_before && !length_after) {
    const bool same =
        !before.empty() && !after.empty() ? all_equal(before, after) : diff.before == diff.after;
    diff.verdict = same ? DiffVerdict::the_same : DiffVerdict::not_told;
    diff.reason = same ? "" : "it never moves within a recording: one value on each side";
    return;
  }
  const std::size_t moved_before = moved(before);
  const std::size_t moved_after = moved(after);
  if (std::max(moved_before, moved_after) < kMinMoves) {
    diff.reason = "too few events: it moves in " + std::to_string(moved_before) + " of " +
                  std::to_string(before.size()) + " and " + std::to_string(moved_after) + " of " +
                  std::to_string(after.size()) + " blocks";
    diff.tells_nothing =
        !diff.events || diff.before == diff.after;  // else its growth tells something
    return;
  }
  const double length = std::max(length_before.value_or(1), length_after.value_or(1));
  auto neighbours = static_cast<std::size_t>(std::ceil(1 + kLengthsABlock * (length - 1)));
  std::vector<double> a = merged(before, neighbours);
  std::vector<double> b = merged(after, neighbours);
  // A metric that seldom moves gets longer blocks, so that it moves in most of them. Otherwise the
  // median of the blocks would not show a change.
  while (std::min(a.size(), b.size()) >= kMinBlocks && (seldom_moves(a) || seldom_moves(b))) {
    neighbours *= 2;
    a = merged(before, neighbours);
    b = merged(after, neighbours);
  }
  if (std::min(a.size(), b.size()) < kMinBlocks) {
    diff.reason = "too few independent values: " + std::to_string(a.size()) + " and " +
                  std::to_string(b.size()) + " of " + std::to_string(kMinBlocks);
    diff.dependent = true;
    diff.tells_nothing = diff.share() && std::abs(*diff.share()) < kLargeDifference;
    return;
  }
  if (values.values_a_block == 0) diff.block_ns = neighbours * block_ns;
  test(a, b, margin, diff);
}

void test_runs(const Values& values, double margin, MetricDiff& diff) {
  const auto& [before, after] = values.means;
  if (all_equal(before, after)) {
    diff.verdict = DiffVerdict::the_same;
  } else if (std::min(before.size(), after.size()) < kMinRuns) {
    diff.reason = "too few runs: " + std::to_string(before.size()) + " and " +
                  std::to_string(after.size()) + " of " + std::to_string(kMinRuns);
  } else {
    test(before, after, margin, diff);
  }
}

// With fewer runs, no p can be low enough for this number of tests.
std::size_t runs_needed(std::size_t tests) {
  std::size_t needed = kMinRuns;
  while (lowest_p(needed, needed) * static_cast<double>(tests) >= kDiffAllowedP) ++needed;
  return needed;
}

void mark_untestable(RecordingDiff& diff) {
  const std::size_t needed = runs_needed(diff.tested);
  for (MetricDiff& metric : diff.metrics) {
    if (metric.verdict == DiffVerdict::none &&
        lowest_p(metric.samples_before, metric.samples_after) * static_cast<double>(diff.tested) >=
            kDiffAllowedP) {
      metric.verdict = DiffVerdict::not_told;
      metric.reason = "too few runs for " + std::to_string(diff.tested) +
                      " metrics at once: give " + std::to_string(needed) +
                      " of each side, or ask for fewer metrics";
    }
  }
}

void correct(RecordingDiff& diff) {
  std::vector<double> p;
  for (const MetricDiff& metric : diff.metrics) {
    if (metric.verdict == DiffVerdict::none) p.push_back(metric.p);
  }
  diff.tested = p.size();
  const std::vector<double> adjusted = holm_adjusted(p);
  std::size_t at = 0;
  for (MetricDiff& metric : diff.metrics) {
    if (metric.verdict != DiffVerdict::none) continue;
    metric.adjusted_p = adjusted[at++];
    // Ranks can differ even if the median shift is 0: then there is no size to report.
    if (metric.adjusted_p < kDiffAllowedP && metric.shift.median != 0) {
      metric.verdict = DiffVerdict::changed;
    }
  }
  if (diff.by_runs) mark_untestable(diff);
}

// Of a quantile: what its buckets can tell.
void describe_buckets(const Values& values, MetricDiff& diff) {
  std::array<bool, 2> any{};
  for (const std::size_t side : {0U, 1U}) {
    const std::vector<BucketRange>& buckets = values.buckets.at(side);
    const auto is_last = [](const BucketRange& bucket) { return bucket.is_last; };
    any.at(side) = std::any_of(buckets.begin(), buckets.end(), is_last);
    diff.above_last.at(side) =
        !buckets.empty() && std::all_of(buckets.begin(), buckets.end(), is_last);
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

// A bucket does not tell where in it the values are. So a quantile that stays in its bucket has not
// changed as far as anybody can tell, and no interval is narrower than the buckets.
void apply_resolution(const Values& values, MetricDiff& diff) {
  const auto& [before, after] = values.buckets;
  if (before.empty() || after.empty() || diff.unbounded) return;
  const double low_before = median_of(before, &BucketRange::low);
  const double high_before = median_of(before, &BucketRange::high);
  const double low_after = median_of(after, &BucketRange::low);
  const double high_after = median_of(after, &BucketRange::high);
  diff.shift.low = std::min(diff.shift.low, low_after - high_before);
  diff.shift.high = std::max(diff.shift.high, high_after - low_before);
  diff.resolution = std::max(high_before - low_before, high_after - low_after);
  const auto is_first = [&](const BucketRange& bucket) { return bucket == before.front(); };
  diff.one_bucket = std::all_of(before.begin(), before.end(), is_first) &&
                    std::all_of(after.begin(), after.end(), is_first);
  if (diff.one_bucket && diff.verdict != DiffVerdict::not_told) diff.verdict = DiffVerdict::none;
}

// No value is below 0, so none can fall by more than 100 %. But the median of the differences
// between single values can be lower than that, so it is cut off there.
void limit_to_all(double before, Shift& shift) {
  for (double* const one : {&shift.median, &shift.low, &shift.high}) *one = std::max(*one, -before);
}

void compare_all(AllValues& all, std::uint64_t block_ns, RecordingDiff& diff) {
  for (auto& [key, values] : all) {
    // A histogram without a value has no quantile.
    if (values.means[0].empty() && values.means[1].empty()) continue;
    MetricDiff metric;
    // The rate of an event that happens only a few times means nothing: compare its growth.
    metric.events = !values.phase && values.kind == Kind::counter && values.most_rises != 0 &&
                    values.most_rises < kMinMoves;
    if (metric.events) values.means = values.growths;
    metric.phase = values.phase;
    metric.quantile = values.quantile != 0;
    metric.histogram = values.histogram;
    metric.name = key.second;
    metric.kind = values.kind;
    metric.unit = values.unit;
    if (!values.means[0].empty()) metric.before = median(values.means[0]);
    if (!values.means[1].empty()) metric.after = median(values.means[1]);
    describe_buckets(values, metric);
    if (!metric.before || !metric.after) {
      metric.verdict = DiffVerdict::one_sided;
    } else if (values.not_known_yet) {
      metric.not_known_yet = true;
      metric.reason = "a recording is unfinished: what it counts may come later";
    } else if (metric.unbounded) {
      // `reason` says why there is no test.
    } else if (diff.by_runs) {
      test_runs(values, diff.margin, metric);
    } else {
      test_blocks(values, block_ns, diff.margin, metric);
    }
    diff.metrics.push_back(std::move(metric));
  }
  correct(diff);
  for (MetricDiff& metric : diff.metrics) {
    if (metric.quantile) apply_resolution(all.at({false, metric.name}), metric);
    if (metric.before) limit_to_all(*metric.before, metric.shift);
  }
  diff.runs_needed = runs_needed(static_cast<std::size_t>(
      std::count_if(diff.metrics.begin(), diff.metrics.end(), [](const MetricDiff& metric) {
        return metric.verdict != DiffVerdict::the_same && metric.verdict != DiffVerdict::one_sided;
      })));
  const auto size = [](const MetricDiff& metric) {
    return std::abs(metric.share().value_or(std::numeric_limits<double>::infinity()));
  };
  std::stable_sort(diff.metrics.begin(), diff.metrics.end(),
                   [&](const MetricDiff& a, const MetricDiff& b) {
                     if (a.verdict != b.verdict) return a.verdict < b.verdict;
                     return size(a) > size(b);
                   });
}

Result<std::vector<DiffRun>> read_runs(const std::vector<std::string>& paths) {
  std::vector<DiffRun> runs;
  for (const std::string& path : paths) {
    auto summary = summarize(path);
    if (!summary) return summary.error();
    if (summary->rows < 2) {
      return Error{Code::invalid_argument, "compare " + path + ": it holds " +
                                               std::to_string(summary->rows) +
                                               (summary->rows == 1 ? " row" : " rows")};
    }
    runs.push_back({std::move(summary).value(), 0, {}});
  }
  return runs;
}

// Every requested metric must exist. Otherwise a misspelt name among others would go unnoticed.
Result<void> find_all_named(const std::vector<DiffRun*>& runs, const DiffOptions& options) {
  std::set<std::string> names;
  for (const DiffRun* run : runs) {
    std::vector<ColumnInfo> infos;
    for (const ColumnSummary& column : run->summary.columns) {
      names.insert({column.info.name, column.info.metric});
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

Result<RecordingDiff> diff_recordings(const std::vector<std::string>& before,
                                      const std::vector<std::string>& after,
                                      const DiffOptions& options) {
  RecordingDiff diff;
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
    auto added = add_run(*runs[i], side, block_ns, options, all, diff.notes);
    if (!added) return added.error();
  }
  if (all.empty()) {
    return Error{Code::invalid_argument, "compare " + before.front() + " with " + after.front() +
                                             ": neither has a metric that was asked for"};
  }
  compare_all(all, block_ns, diff);
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
