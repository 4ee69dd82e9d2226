#include "daemon/request/release.h"

#include <spdlog/spdlog.h>

#include "daemon/request/run_record.h"

namespace kymo::daemon {

Result<v1::ReleaseResponse> release_job(const Parts& parts, const v1::ReleaseRequest& request) {
  parts.jobs.refresh();
  const Result<store::Job> job = parts.jobs.find(request.job());
  if (!job) return job.error();
  const std::string tried = "release job " + job->name + ": ";
  if (job->state != store::JobState::running) {
    return Error{Code::failed_precondition, tried + "it is not running (it is " +
                                                std::string(store::name_of(job->state)) +
                                                "): kymo delete removes it"};
  }
  const auto claim = parts.claims.claim("process:" + std::to_string(job->pid));
  if (!claim || job->pid <= 0) {
    return Error{
        Code::failed_precondition,
        tried + (claim ? "it is being started" : "it is being dumped") + ": wait for that to end"};
  }
  v1::ReleaseResponse out;
  *out.mutable_job() = parts.jobs.view(*job);
  if (Result<void> removed = parts.jobs.remove(*job); !removed) return removed.error();
  parts.metrics.outcomes()->forget(history_owner(*job));
  spdlog::info("release: job {} (pid {}) is no longer a job", job->name, job->pid);
  return out;
}

}  // namespace kymo::daemon
