#include "daemon/recording/outcome_counts.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "daemon/recording/metric_family.h"

namespace kymo::daemon {
namespace {

// The most targets that are shown. Anybody who may use kymod can make jobs of new names.
constexpr std::size_t kMaxRows = 1000;
constexpr double kNanosecondsInASecond = 1e9;

template <class Value>
void add_series(prometheus::MetricFamily& family, const std::string& request, const char* label,
                const std::string& value, Value set) {
  prometheus::ClientMetric metric;
  metric.label = {{"request", request}, {label, value}};
  set(metric);
  family.metric.push_back(std::move(metric));
}

}  // namespace

OutcomeCounts::OutcomeCounts()
    : refusals_{{{"dump", "disk-full"}, 0}, {{"restore", "damaged-images"}, 0}} {}

void OutcomeCounts::failed(std::string_view request, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  ++counts_[{std::string(request), std::string(reason)}];
}

void OutcomeCounts::refused(std::string_view request, std::string_view reason,
                            std::string_view target, std::int64_t at_unix_ns) {
  const std::lock_guard lock(mutex_);
  ++refusals_[{std::string(request), std::string(reason)}];
  if (target.empty()) return;
  const Key key(request, target);
  if (rows_.size() >= kMaxRows && !rows_.contains(key)) return;
  Row& row = rows_[key];
  if (row.last_unix_ns < at_unix_ns - kShownFor) row.refusals = 0;
  ++row.refusals;
  row.last_unix_ns = at_unix_ns;
}

void OutcomeCounts::succeeded(std::string_view request, std::string_view target,
                              const Success& success) {
  if (target.empty()) return;
  const Key key(request, target);
  const std::lock_guard lock(mutex_);
  rows_.erase(key);
  if (successes_.size() >= kMaxRows && !successes_.contains(key)) {
    successes_.erase(std::min_element(
        successes_.begin(), successes_.end(),
        [](const auto& a, const auto& b) { return a.second.at_unix_ns < b.second.at_unix_ns; }));
  }
  successes_[key] = success;
}

void OutcomeCounts::continue_row(std::string_view request, std::string_view target,
                                 std::uint64_t refusals, std::int64_t last_unix_ns) {
  const std::lock_guard lock(mutex_);
  if (rows_.size() < kMaxRows) rows_[Key(request, target)] = {refusals, last_unix_ns};
}

void OutcomeCounts::forget(std::string_view target) {
  const std::lock_guard lock(mutex_);
  const auto is_of_it = [target](const auto& row) { return row.first.second == target; };
  std::erase_if(rows_, is_of_it);
  std::erase_if(successes_, is_of_it);
}

std::vector<prometheus::MetricFamily> OutcomeCounts::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto add_family = [&families](prometheus::MetricFamily family) {
    if (!family.metric.empty()) families.push_back(std::move(family));
  };
  const auto counter = [](const char* name, const char* help,
                          const std::map<Key, std::uint64_t>& counts) {
    prometheus::MetricFamily family = metric_family(name, help, prometheus::MetricType::Counter);
    for (const auto& [what, count] : counts) {
      add_series(family, what.first, "reason", what.second,
                 [value = count](prometheus::ClientMetric& metric) {
                   metric.counter.value = static_cast<double>(value);
                 });
    }
    return family;
  };
  const std::lock_guard lock(mutex_);
  add_family(counter("failures_total",
                     "Dumps and restores that failed, by the reason's id in docs/errors.md",
                     counts_));
  add_family(counter("refusals_total",
                     "Dumps and restores that were refused, by the reason's id in docs/errors.md",
                     refusals_));
  const auto gauge = [](const char* name, const char* help, const auto& rows, const auto& value) {
    prometheus::MetricFamily family = metric_family(name, help, prometheus::MetricType::Gauge);
    for (const auto& [what, row] : rows) {
      const std::optional<double> shown = value(row);
      if (!shown) continue;
      add_series(family, what.first, "target", what.second,
                 [&](prometheus::ClientMetric& metric) { metric.gauge.value = *shown; });
    }
    return family;
  };
  add_family(gauge("refused_in_a_row",
                   "Requests for a job or container that were refused since one succeeded", rows_,
                   [oldest = unix_ns() - kShownFor](const Row& row) -> std::optional<double> {
                     if (row.last_unix_ns < oldest) return {};
                     return static_cast<double>(row.refusals);
                   }));
  add_family(gauge("last_success_timestamp_seconds",
                   "When the last request for a job or container that succeeded had ended",
                   successes_, [](const Success& success) -> std::optional<double> {
                     return static_cast<double>(success.at_unix_ns) / kNanosecondsInASecond;
                   }));
  add_family(gauge("last_success_duration_seconds",
                   "How long the last request for a job or container that succeeded took",
                   successes_, [](const Success& success) -> std::optional<double> {
                     return static_cast<double>(success.duration_ns) / kNanosecondsInASecond;
                   }));
  return families;
}

}  // namespace kymo::daemon
