#include "lens/analysis/diff_totals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "lens/analysis/robust.h"

namespace kymo::analysis {
namespace {

bool differ_by_more(const MetricDiff& metric, double share) {
  return !metric.share() || std::abs(*metric.share()) > share;
}

}  // namespace

std::string total_name(const std::string& counter) {
  return counter + " total";
}

MetricDiff compare_lengths(const RecordingDiff& diff) {
  std::array<std::vector<double>, 2> lengths;
  std::uint64_t row_ns = 0;
  for (const std::size_t side : {0U, 1U}) {
    for (const DiffRun& run : side == 0 ? diff.before : diff.after) {
      lengths.at(side).push_back(static_cast<double>(run.window.length_ns()));
      row_ns = std::max(
          row_ns, run.summary.duration_ns() / std::max<std::uint64_t>(run.summary.rows - 1, 1));
    }
  }
  MetricDiff length;
  length.name = kLengthName;
  length.length = true;
  length.unit = Unit::nanoseconds;
  length.before = median(lengths[0]);
  length.after = median(lengths[1]);
  std::vector<double> all = lengths[0];
  all.insert(all.end(), lengths[1].begin(), lengths[1].end());
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  if (*most - *least <= static_cast<double>(row_ns)) {
    length.verdict = MetricDiff::Verdict::the_same;
  } else if (diff.unfinished) {
    length.reason = "a recording is unfinished: it may become longer";
  } else if (diff.by_runs) {
    test_runs(lengths[0], lengths[1], diff.margin, length);
  } else {
    length.reason = kOneRunEach;
    length.tells_nothing = !differ_by_more(length, diff.margin);
  }
  return length;
}

bool counts_others(const std::string& column) {
  const auto starts = [&](const char* prefix) { return column.starts_with(prefix); };
  const auto ends = [&](const char* suffix) { return column.ends_with(suffix); };
  return starts("cgroup_") || starts("machine_") || starts("disk_") ||
         ends("_involuntary_switches") || ends("_cpu_wait_ns") || ends("_runnable_ns");
}

bool totals_are_needed(const MetricDiff& length, const RecordingDiff& diff) {
  if (diff.by_runs && !diff.unfinished) return length.verdict != MetricDiff::Verdict::the_same;
  switch (length.verdict) {
    case MetricDiff::Verdict::changed:
      return true;
    case MetricDiff::Verdict::none:
      return false;
    case MetricDiff::Verdict::not_told:
      return !length.tells_nothing && differ_by_more(length, kPairMargin);
    case MetricDiff::Verdict::one_sided:
    case MetricDiff::Verdict::the_same:
      break;
  }
  return false;
}

MetricDiff compare_totals(const std::string& counter, const DiffValues& values,
                          const RecordingDiff& diff) {
  const auto& [before, after] = values.growths;
  MetricDiff total;
  total.name = total_name(counter);
  total.total = true;
  total.kind = Kind::counter;
  total.unit = values.unit;
  if (!before.empty()) total.before = median(before);
  if (!after.empty()) total.after = median(after);
  if (!total.before || !total.after) {
    total.verdict = MetricDiff::Verdict::one_sided;
    total.tells_nothing = true;
    return total;
  }
  if (diff.by_runs) {
    test_runs(before, after, diff.margin, total);
  } else {
    total.reason = kOneRunEach;
    total.tells_nothing = !differ_by_more(total, diff.margin);
  }
  if (*total.before == 0 && *total.after == 0) total.tells_nothing = true;
  return total;
}

}  // namespace kymo::analysis
