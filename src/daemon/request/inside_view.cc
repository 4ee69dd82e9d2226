#include "daemon/request/inside_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/spawn.h"
#include "criu/phases.h"

namespace kymo::daemon {

void InsideView::add_columns(const inside::Target& target, std::shared_ptr<OwnColumns> columns) {
  subjects_ = std::make_shared<inside::Subjects>();
  columns_ = std::move(columns);
  sampler_.emplace(inside::make_sources(target, subjects_));
  first_ = columns_->extend(sampler_->columns(), sampler_->values());
}

void InsideView::start(std::chrono::nanoseconds interval) {
  if (!sampler_) return;
  runs_ = true;
  spawn_listener = subjects_.get();
  timeline_.emplace(sampler_->columns().size());
  sampler_->start(interval, [this](auto values) {
    columns_->set_all(first_, values);
    timeline_->add(monotonic_ns(), values);
  });
}

void InsideView::stop() {
  if (!std::exchange(runs_, false)) return;
  spawn_listener = nullptr;
  sampler_->stop();
}

std::optional<std::uint64_t> InsideView::grown(std::string_view column, std::uint64_t from_ns,
                                               std::uint64_t to_ns) const {
  if (!timeline_) return std::nullopt;
  const std::vector<Metric>& columns = sampler_->columns();
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Metric& metric) { return metric.name == column; });
  if (found == columns.end()) return std::nullopt;
  return timeline_->grown(static_cast<std::size_t>(found - columns.begin()), from_ns, to_ns);
}

void InsideView::add_signals(std::uint64_t began_ns, diagnosis::Facts& facts) const {
  if (!timeline_) return;
  const diagnosis::Window window = diagnosis::window_of(facts.phases, facts.restore);
  const auto seen = [&](const char* column) {
    return grown(column, began_ns + window.begin_ns, began_ns + window.end_ns);
  };
  const auto sum = [&](const char* first, const char* second) {
    std::optional<std::uint64_t> both = seen(first);
    if (both) *both += seen(second).value_or(0);
    return both;
  };
  const auto with_target = [&](const char* criu, const char* target) {
    return facts.restore ? sum(criu, target) : seen(criu);
  };
  diagnosis::Signals& signals = facts.signals;
  signals.cpu_ns = with_target("criu_cpu_ns", "target_cpu_ns");
  signals.cpu_wait_ns = with_target("criu_cpu_wait_ns", "target_cpu_wait_ns");
  signals.disk_wait_ns = seen("criu_disk_wait_ns");
  signals.throttled_ns = seen("criu_throttled_ns");
  signals.machine_ns = seen("machine_cpu_ns");
  signals.kymod_gaps_ns = timeline_->gaps_ns(began_ns + window.begin_ns, began_ns + window.end_ns);
  signals.steal_ns = seen("machine_steal_ns");
  signals.memory_wait_ns = seen("machine_memory_wait_ns");
  signals.wakeups = seen("criu_timeslices");
  signals.target_disk_wait_ns = seen("target_disk_wait_ns");
  signals.major_faults = sum("criu_major_faults", "target_major_faults");
  if (facts.restore) {
    signals.faults = seen("target_minor_faults");
    return;
  }
  signals.target_ns = sum("target_cpu_ns", "target_cpu_wait_ns");
  for (const diagnosis::Phase& phase : facts.phases) {
    if (phase.name != criu::kFreezePhase) continue;
    const auto slept =
        grown("target_disk_wait_ns", began_ns + phase.begin_ns, began_ns + phase.end_ns);
    if (slept) signals.freeze_disk_wait_ns = signals.freeze_disk_wait_ns.value_or(0) + *slept;
  }
  if (inside::Sleeper sleeper = sampler_->sleeper(); sleeper.task != 0) {
    facts.sleeper = {sleeper.task, std::move(sleeper.where)};
  }
}

std::optional<nlohmann::json> InsideView::end() {
  stop();
  if (!timeline_) return std::nullopt;
  return nlohmann::json{{"missing", sampler_->missing()},
                        {"cpu_ns", sampler_->cpu_ns()},
                        {"readings", sampler_->readings()}};
}

}  // namespace kymo::daemon
