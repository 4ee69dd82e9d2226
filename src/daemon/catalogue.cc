#include "daemon/catalogue.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/run_record.h"
#include "daemon/stats_json.h"

namespace kymo::daemon {
namespace {

v1::Checkpoint::State state_of(store::CheckpointState state) {
  switch (state) {
    case store::CheckpointState::started:
      return v1::Checkpoint::STARTED;
    case store::CheckpointState::complete:
      return v1::Checkpoint::COMPLETE;
    case store::CheckpointState::deleting:
      return v1::Checkpoint::DELETING;
    case store::CheckpointState::failed:
      return v1::Checkpoint::FAILED;
  }
  return v1::Checkpoint::STATE_UNSPECIFIED;
}

Result<std::map<std::string, std::string>> names_by_id(store::Store& store) {
  const Result<std::vector<store::Job>> jobs = store.jobs();
  if (!jobs) return jobs.error();
  std::map<std::string, std::string> names;
  for (const store::Job& job : *jobs) names[job.id] = job.name;
  return names;
}

}  // namespace

v1::Checkpoint to_api(const store::Checkpoint& checkpoint, const std::string& job) {
  v1::Checkpoint out;
  out.set_id(checkpoint.id);
  out.set_job(job);
  out.set_pid(checkpoint.pid);
  out.set_state(state_of(checkpoint.state));
  out.set_created_unix_ns(checkpoint.created_unix_ns);
  out.set_directory(checkpoint.directory);
  out.set_image_bytes(checkpoint.image_bytes);
  out.set_duration_ns(checkpoint.duration_ns);
  if (const auto stats = dump_stats_of(checkpoint.stats_json)) *out.mutable_stats() = *stats;
  out.set_error(checkpoint.error);
  return out;
}

Result<v1::CheckpointsResponse> list_checkpoints(const Parts& parts,
                                                 const v1::CheckpointsRequest& request) {
  std::string job_id;
  if (!request.job().empty()) {
    const Result<store::Job> job = parts.jobs.find(request.job());
    if (!job) return job.error();
    job_id = job->id;
  }
  const Result<std::vector<store::Checkpoint>> checkpoints = parts.store.checkpoints(job_id);
  if (!checkpoints) return checkpoints.error();
  Result<std::map<std::string, std::string>> names = names_by_id(parts.store);
  if (!names) return names.error();
  v1::CheckpointsResponse out;
  for (const store::Checkpoint& checkpoint : *checkpoints) {
    *out.add_checkpoints() = to_api(checkpoint, (*names)[checkpoint.job_id]);
  }
  return out;
}

Result<v1::HistoryResponse> history_of(const Parts& parts, const v1::HistoryRequest& request) {
  const Result<store::Job> job = parts.jobs.find(request.job());
  if (!job) return job.error();
  const auto kind = request.restores() ? store::RunKind::restore : store::RunKind::dump;
  const Result<std::vector<store::Run>> runs = parts.store.runs(job->id, kind);
  if (!runs) return runs.error();
  const std::size_t last = request.last() == 0 ? runs->size() : request.last();
  v1::HistoryResponse out;
  out.set_job(job->name);
  for (std::size_t i = runs->size() - std::min(last, runs->size()); i < runs->size(); ++i) {
    *out.add_runs() = to_api((*runs)[i]);
  }
  return out;
}

}  // namespace kymo::daemon
