#include "jobs/watched_process.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/proc/process.h"
#include "checkpoint/inside/sources.h"
#include "recorder/metrics/unit_names.h"

namespace kymo::cli {
namespace {

// The view is refreshed a few times a second.
constexpr std::chrono::milliseconds kEvery{10};
constexpr std::size_t kMaxJobs = 16;

record::LiveValue live_value(const Metric& metric, std::string name, std::uint64_t value) {
  return {std::move(name), metric.kind == Kind::counter, unit_name(metric.unit), value};
}

std::vector<std::unique_ptr<inside::Source>> sources_of_job(int pid) {
  std::vector<std::unique_ptr<inside::Source>> sources;
  sources.push_back(inside::make_target_source(pid));
  return sources;
}

}  // namespace

ProcessSource::ProcessSource(int pid) : pid_(pid), seen_(inside::sources_of_process(pid), kEvery) {}

Result<record::LiveRow> ProcessSource::read() {
  record::LiveRow row;
  row.ended = !probe::read_process(pid_);
  row.time_ns = monotonic_ns();
  const std::vector<std::uint64_t> values = seen_.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Metric& metric = seen_.columns()[i];
    row.values.push_back(live_value(metric, metric.name, values[i]));
  }
  return row;
}

void WatchedJobs::append_to(record::LiveRow& row, const v1::ListResponse& jobs) {
  constexpr std::string_view kTarget = "target_";
  std::map<std::string, Watched> still;
  for (const v1::Job& job : jobs.jobs()) {
    if (job.state() != v1::Job::RUNNING || job.pid() <= 0 || still.size() >= kMaxJobs) continue;
    const auto known = jobs_.find(job.name());
    Watched watched;
    if (known != jobs_.end() && known->second.pid == job.pid()) watched = std::move(known->second);
    if (watched.seen == nullptr) {
      watched = {job.pid(), std::make_unique<inside::Latest>(sources_of_job(job.pid()), kEvery)};
    }
    const std::vector<std::uint64_t> values = watched.seen->values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Metric& metric = watched.seen->columns()[i];
      const std::string name = "job_" + metric.name.substr(kTarget.size()) + "[" + job.name() + "]";
      row.values.push_back(live_value(metric, name, values[i]));
    }
    still.emplace(job.name(), std::move(watched));
  }
  jobs_ = std::move(still);
}

}  // namespace kymo::cli
