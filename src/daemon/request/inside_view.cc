#include "daemon/request/inside_view.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/spawn.h"
#include "checkpoint/criu/drive/phases.h"

namespace kymo::daemon {

void InsideView::add_columns(const inside::Observed& target, const KernelView::Counts& kernel,
                             const std::vector<pid_t>& restored,
                             std::shared_ptr<OwnColumns> columns) {
  subjects_ = std::make_shared<inside::Subjects>();
  columns_ = std::move(columns);
  auto sources = inside::make_sources(target, subjects_);
  auto view = kernel ? (*kernel)->begin(target.container, target.restores) : kernel.error();
  if (view) {
    auto bpf = std::make_unique<inside::BpfSource>(*std::move(view), target, subjects_,
                                                   (*kernel)->pages());
    bpf->expect(restored);
    bpf_ = bpf.get();
    sources.push_back(std::move(bpf));
  } else {
    no_bpf_ = view.error().message;
  }
  sampler_.emplace(std::move(sources));
  first_ = columns_->extend(sampler_->columns(), sampler_->values(), sampler_->ages());
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

void InsideView::runtime_called() {
  if (runs_ && bpf_ != nullptr) bpf_->follow(LastingStarter().thread());
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
  // A CRIU that did nothing is one that BPF did not find.
  const bool exact = seen("criu_run_ns").value_or(0) != 0;
  if (exact) {
    signals.cpu_ns = with_target("criu_run_ns", "target_run_ns");
    signals.cpu_wait_ns = with_target("criu_runnable_ns", "target_runnable_ns");
    signals.disk_wait_ns = std::max(seen("criu_off_disk_ns"), seen("criu_disk_wait_ns"));
    signals.socket_wait_ns = seen("criu_off_socket_ns");
    signals.process_wait_ns = seen("criu_off_process_ns");
    signals.pipe_wait_ns = seen("criu_off_pipe_ns");
  } else {
    signals.cpu_ns = with_target("criu_cpu_ns", "target_cpu_ns");
    signals.cpu_wait_ns = with_target("criu_cpu_wait_ns", "target_cpu_wait_ns");
    signals.disk_wait_ns = seen("criu_disk_wait_ns");
  }
  signals.throttled_ns = seen("criu_throttled_ns");
  signals.stopped_ns = seen("criu_stopped_ns");
  signals.stopped_before_ns = grown("criu_stopped_ns", began_ns, began_ns + window.begin_ns);
  for (const diagnosis::Phase& phase : facts.phases) {
    if (phase.name != criu::kProbePhase) continue;
    for (const char* const column :
         {"criu_stopped_ns", exact ? "criu_runnable_ns" : "criu_cpu_wait_ns"}) {
      const auto held = grown(column, began_ns + phase.begin_ns, began_ns + phase.end_ns);
      if (held) signals.probe_held_ns = signals.probe_held_ns.value_or(0) + *held;
    }
  }
  signals.criu_quota_ns = seen("quota_criu_wait_ns");
  signals.target_quota_ns = seen("quota_target_wait_ns");
  signals.machine_ns = seen("machine_cpu_ns");
  signals.kymod_gaps_ns = timeline_->gaps_ns(began_ns + window.begin_ns, began_ns + window.end_ns);
  // Before and after CRIU, what kymod does is no hindrance.
  std::uint64_t criu_begin_ns = window.begin_ns;
  std::uint64_t criu_end_ns = window.end_ns;
  signals.answer_gaps_ns = 0;
  for (const diagnosis::Phase& phase : facts.phases) {
    if (phase.name == criu::kAnswerPhase) {
      *signals.answer_gaps_ns +=
          timeline_->gaps_ns(began_ns + phase.begin_ns, began_ns + phase.end_ns);
    }
    if (phase.name == diagnosis::kPreparePhase)
      criu_begin_ns = std::max(criu_begin_ns, phase.end_ns);
    if (phase.name == criu::kFinishPhase) criu_end_ns = std::min(criu_end_ns, phase.begin_ns);
  }
  signals.kymod_ns = grown("kymod_cpu_ns", began_ns + criu_begin_ns, began_ns + criu_end_ns);
  signals.kymod_looks_ns = sampler_->cpu_ns();
  signals.steal_ns = seen("machine_steal_ns");
  signals.memory_wait_ns = seen("machine_memory_wait_ns");
  signals.wakeups = seen("criu_timeslices");
  signals.target_disk_wait_ns = seen("target_disk_wait_ns");
  signals.major_faults = sum("criu_major_faults", "target_major_faults");
  if (facts.restore) {
    // The sum over processes that are restored side by side can be longer than the restore.
    if (signals.target_disk_wait_ns) signals.target_disk_wait_ns = sampler_->longest_disk_wait_ns();
    signals.faults = seen("target_minor_faults");
    return;
  }
  signals.target_cpu_wait_ns = seen(exact ? "target_runnable_ns" : "target_cpu_wait_ns");
  signals.target_ns = exact ? sum("target_run_ns", "target_runnable_ns")
                            : sum("target_cpu_ns", "target_cpu_wait_ns");
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
  std::vector<std::string> missing = sampler_->missing();
  if (!no_bpf_.empty()) missing.push_back("system calls and exact times: " + no_bpf_);
  return nlohmann::json{{"missing", std::move(missing)},
                        {"cpu_ns", sampler_->cpu_ns()},
                        {"readings", sampler_->readings()}};
}

}  // namespace kymo::daemon
