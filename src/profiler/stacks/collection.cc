#include "profiler/stacks/collection.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/proc/process.h"
#include "profiler/stacks/unwind.h"

namespace kymo::stacks {
namespace {

std::uint64_t own_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return to_nanos(used);
}

bool has_unknown(const Unwound& unwound) {
  return std::any_of(unwound.frames.begin(), unwound.frames.end(),
                     [](const Frame& frame) { return frame.module == nullptr; });
}

bool has_jit(const Unwound& unwound) {
  return std::any_of(unwound.frames.begin(), unwound.frames.end(), [](const Frame& frame) {
    return frame.module != nullptr && frame.module->kind == Module::Kind::jit;
  });
}

}  // namespace

Collection::Collection(std::unique_ptr<Source> source, const Sampling& sampling, Put put)
    : source_(std::move(source)),
      put_(std::move(put)),
      begin_ns_(monotonic_ns()),
      begin_cpu_ns_(own_cpu_ns()) {
  profile_.waits = sampling.waits;
  profile_.period_ns = sampling.waits ? 0 : kNanosPerSecond / sampling.rate;
  profile_.begin_unix_ns = unix_ns();
  profile_.processes = std::make_unique<Processes>();
  // The processes that exist now are read at once: they could end before their first sample is
  // handled.
  const bool all = sampling.target.kind != Profiled::Kind::processes;
  for (const pid_t pid : all ? probe::all_processes() : sampling.target.pids) {
    profile_.processes->add_running(pid);
  }
}

void Collection::round() {
  take_until(monotonic_ns());
}

// Events come from several buffers. All events that are older than the horizon have arrived. They
// are handled in the order of their times, so that each sample finds its process as it was at that
// time.
void Collection::take_until(std::uint64_t horizon_ns) {
  source_->drain(pending_);
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  const auto after = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Event& event) { return event.time_ns > horizon_ns; });
  std::for_each(pending_.begin(), after, [this](const Event& event) { take(event); });
  pending_.erase(pending_.begin(), after);
}

void Collection::take(const Event& event) {
  Processes& processes = *profile_.processes;
  if (const auto* sample = std::get_if<Sample>(&event.what)) {
    if (sample->pid != not_executed_ || event.time_ns > executed_by_ns_) {
      count(*sample, event.time_ns);
    }
    return;
  }
  if (const auto* mapped = std::get_if<Mapped>(&event.what)) return processes.mapped(*mapped);
  if (const auto* forked = std::get_if<Forked>(&event.what)) return processes.forked(*forked);
  if (const auto* executed = std::get_if<Executed>(&event.what)) {
    if (executed->pid == not_executed_) not_executed_ = 0;
    return processes.executed(*executed);
  }
  if (const auto* exited = std::get_if<Exited>(&event.what)) return processes.exited(*exited);
  processes.named(std::get<Named>(event.what));
}

void Collection::count(const Sample& sample, std::uint64_t time_ns) {
  Processes& processes = *profile_.processes;
  const Processes::Process& process = processes.at(sample.pid);
  Unwound unwound = unwind(process, sample);
  if (has_unknown(unwound) && processes.read_again(sample.pid)) unwound = unwind(process, sample);
  if (has_jit(unwound)) processes.find_perf_map(sample.pid);
  Trace trace{sample.pid, sample.process, sample.thread, process.container, {}, unwound.truncated};
  if (trace.process.empty()) trace.process = processes.name_of(sample.pid);
  if (trace.thread.empty()) trace.thread = processes.name_of(sample.tid);
  for (std::size_t i = 0; i < sample.kernel.size(); ++i) {
    // All but the innermost are where a call returns to.
    trace.frames.push_back({processes.kernel(), sample.kernel[i] - (i == 0 ? 0 : 1)});
  }
  trace.frames.insert(trace.frames.end(), unwound.frames.begin(), unwound.frames.end());
  if (put_) return put_(std::move(trace), sample, process, time_ns);
  profile_.traces[std::move(trace)] += {1, sample.value_ns};
}

Profile Collection::finish() {
  source_->stop();
  profile_.duration_ns = monotonic_ns() - begin_ns_;
  take_until(UINT64_MAX);
  profile_.cpu_ns = own_cpu_ns() - begin_cpu_ns_ + profile_.processes->reader_cpu_ns();
  profile_.counts = source_->counts();
  return std::move(profile_);
}

}  // namespace kymo::stacks
