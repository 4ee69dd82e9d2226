#include "daemon/request/refusal.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "checkpoint/failures/explain.h"
#include "daemon/request/run_record.h"
#include "daemon/state/history_owner.h"

namespace kymo::daemon {
namespace {

// The owner as /metrics shows it; empty if it does not.
std::string metric_target(const std::string& owner) {
  return owner.starts_with(kProgramOwner) ? std::string() : owner;
}

// Asks the disk.
std::string with_history(const Parts& parts, std::string owner) {
  const auto runs = parts.store.runs(owner, store::RunKind::dump, 1);
  return runs && !runs->empty() ? std::move(owner) : std::string();
}

std::string owner_of_gone(const Parts& parts, v1::Runtime runtime, const std::string& name) {
  const Result<runtime::Kind> kind = kind_of(runtime);
  return kind ? with_history(parts, owner_of_container(*kind, name)) : std::string();
}

}  // namespace

void note_ending(const Request& request, const Result<void>& result, const std::string& owner,
                 bool in_history, const std::string& checkpoint) {
  OutcomeCounts& counts = *request.parts.metrics.outcomes();
  const std::string_view kind = store::name_of(request.kind);
  if (result) {
    return counts.succeeded(kind, metric_target(owner), {unix_ns(), request.duration_ns()});
  }
  if (result_of(result, request.begun) != RequestResult::refused) return;
  store::Run run;
  run.failure = failures::of_error(result.error()).id;
  counts.refused(kind, run.failure, metric_target(owner), request.began_unix_ns);
  if (owner.empty() || in_history) return;
  run.id = "refused-" + std::to_string(request.began_unix_ns) + "-" + request.progress.id();
  run.kind = request.kind;
  run.owner = owner;
  run.created_unix_ns = request.began_unix_ns;
  run.error = result.error().message;
  run.refused = true;
  run.checkpoint_id = checkpoint;
  request.parts.store.note_refusal(run);
}

std::string owner_of_missing(const Parts& parts, const v1::Target& asked) {
  switch (asked.target_case()) {
    case v1::Target::kJob:
      if (const Result<store::Job> job = parts.jobs.find(asked.job()); job) {
        return history_owner(*job);
      }
      return with_history(parts, owner_of_job(asked.job()));
    case v1::Target::kRunc:
      return owner_of_gone(parts, v1::RUNC, asked.runc());
    case v1::Target::kPodman:
      return owner_of_gone(parts, v1::PODMAN, asked.podman());
    case v1::Target::kContainer:
      return owner_of_gone(parts, asked.container().runtime(), asked.container().name());
    default:
      return {};
  }
}

std::string owner_in(store::Store& store, const std::string& directory) {
  for (const store::Checkpoint& checkpoint : store.checkpoints()) {
    if (checkpoint.directory != directory || checkpoint.job_id.empty()) continue;
    const Result<store::Job> job = store.job(checkpoint.job_id);
    if (job) return history_owner(*job);
  }
  return {};
}

void continue_counts(store::Store& store, OutcomeCounts& counts) {
  constexpr std::size_t kNewest = 1000;
  std::set<std::string> jobs;
  for (const store::Job& job : store.jobs()) jobs.insert(history_owner(job));
  // A history outlives its job.
  const auto target_of = [&](const std::string& owner) {
    const bool gone = owner.starts_with(kJobOwner) && !jobs.contains(owner);
    return gone ? std::string() : metric_target(owner);
  };
  for (const store::RunKind kind : {store::RunKind::dump, store::RunKind::restore}) {
    const Result<std::vector<store::Run>> runs = store.runs({}, kind, kNewest);
    if (!runs) continue;
    struct Row {
      std::uint64_t refusals = 0;
      std::int64_t last_unix_ns = 0;
    };
    std::map<std::string, Row> rows;
    std::set<std::string> ended;  // the owners with a newer success
    std::for_each(runs->rbegin(), runs->rend(), [&](const store::Run& run) {
      if (run.error.empty() && ended.insert(run.owner).second) {
        counts.succeeded(
            store::name_of(kind), target_of(run.owner),
            {run.created_unix_ns + static_cast<std::int64_t>(run.duration_ns), run.duration_ns});
      }
      if (!run.refused || ended.contains(run.owner)) return;
      Row& row = rows[run.owner];
      if (row.refusals++ == 0) row.last_unix_ns = run.created_unix_ns;
    });
    for (const auto& [owner, row] : rows) {
      const std::string target = target_of(owner);
      if (target.empty()) continue;
      counts.continue_row(store::name_of(kind), target, row.refusals, row.last_unix_ns);
    }
  }
}

}  // namespace kymo::daemon
