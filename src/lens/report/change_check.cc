#include "lens/report/change_check.h"

#include <algorithm>

namespace kymo::report {
namespace {

using analysis::MetricDiff;
using analysis::RecordingDiff;
using DiffVerdict = MetricDiff::Verdict;

bool may_go_unjudged(const MetricDiff& metric, const AllowedChange& allowed) {
  if (metric.named) return false;
  return metric.one_bucket ? is_hidden(metric, allowed)
                           : metric.tells_nothing && !allowed.exceeded_by(metric.share());
}

}  // namespace

bool is_hidden(const MetricDiff& metric, const AllowedChange& allowed) {
  return metric.quantile && metric.before && metric.after &&
         allowed.side_of(metric.least_interval()) == AllowedChange::Side::across;
}

ChangeCheck check_change(const RecordingDiff& diff, const AllowedChange& allowed) {
  ChangeCheck check{allowed, {}, {}, {}, {}, {}, !diff.broken.empty()};
  for (const MetricDiff& metric : diff.metrics) {
    const AllowedChange::Side side = allowed.side_of(metric.interval());
    if (side == AllowedChange::Side::beyond && metric.verdict == DiffVerdict::changed) {
      (metric.others ? check.of_others : check.changed).push_back(&metric);
    } else if (metric.others) {
      continue;
    } else if (side == AllowedChange::Side::within) {
      check.within.push_back(&metric);
    } else {
      (may_go_unjudged(metric, allowed) ? check.not_judged : check.undecided).push_back(&metric);
    }
  }
  return check;
}

std::optional<std::size_t> runs_to_decide(const MetricDiff& metric, const RecordingDiff& diff,
                                          const AllowedChange& allowed) {
  if (is_hidden(metric, allowed)) return {};
  if (metric.runs[0].empty()) return std::max(diff.runs_needed, analysis::kMinRuns);
  for (std::size_t runs = std::min(metric.samples_before, metric.samples_after) + 1;
       runs <= kMaxRunsToAdvise; ++runs) {
    switch (allowed.side_of(metric.interval_at(runs))) {
      case AllowedChange::Side::within:
        return runs;
      case AllowedChange::Side::beyond:
        return std::max(runs, diff.runs_needed);  // enough for the correction, too
      case AllowedChange::Side::across:
        break;
    }
  }
  return {};
}

const char* to_string(ChangeCheck::Outcome outcome, bool only_increases) {
  switch (outcome) {
    case ChangeCheck::Outcome::no_change:
      return only_increases ? "no increase" : "no change";
    case ChangeCheck::Outcome::changed:
      return "changed";
    case ChangeCheck::Outcome::cannot_tell:
      break;
  }
  return "cannot tell";
}

}  // namespace kymo::report
