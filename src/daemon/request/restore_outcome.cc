#include "daemon/request/restore_outcome.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/request/cpu_priority.h"
#include "daemon/request/refusal.h"
#include "daemon/request/restored_job.h"
#include "daemon/request/run_record.h"
#include "daemon/request/target.h"
#include "daemon/state/stats_json.h"

namespace kymo::daemon {
namespace {

using nlohmann::json;

// Adds the restore to the job's history. If that fails, the restore only gets a warning.
void add_run(RestoreContext& c, const Result<void>& result) {
  const Scope scope("update store", {.category = "store"});
  store::Run run = common_run(c, result, c.outcome);
  run.id = RestoreNote::run_id(c.began_unix_ns, c.job->id);
  run.owner = history_owner(*c.job);
  run.away_ns = c.away_ns;
  run.checkpoint_id = checkpoint_in(c.parts.store, c.directory);
  run.image_bytes = image_bytes_of(c);
  c.warn_unless(c.parts.store.add_run(run));
}

// Damaged images are found after the folder was trusted. So its record says whose copy they are.
std::string owner_of_copy(const RestoreContext& c, const Error& error) {
  const json entry = c.record.value("job", json::object());
  const json id = entry.is_object() ? entry.value("id", json()) : json();
  if (error.code != Code::data_loss || !id.is_string()) return {};
  const Result<store::Job> job = c.parts.store.job(id.get<std::string>());
  return job ? history_owner(*job) : "";
}

}  // namespace

std::string checkpoint_in(store::Store& store, const std::string& directory) {
  const std::vector<store::Checkpoint> all = store.checkpoints();
  const auto newest = std::find_if(all.rbegin(), all.rend(), [&](const store::Checkpoint& one) {
    return one.directory == directory;
  });
  return newest == all.rend() ? std::string() : newest->id;
}

Result<bool> ran_since_dump(const RestoreContext& c) {
  constexpr std::size_t kNewest = 100;
  const Result<std::vector<store::Run>> runs = c.parts.store.runs(
      c.job ? history_owner(*c.job) : std::string(), store::RunKind::restore, kNewest);
  if (!runs) return runs.error();
  const json dumped = c.record.value("created_unix_ns", json());
  const std::string id = checkpoint_in(c.parts.store, c.directory);
  return std::any_of(runs->begin(), runs->end(), [&](const store::Run& run) {
    const bool later = c.job && dumped.is_number_integer() && run.created_unix_ns > dumped;
    return run.error.empty() && (later || (!id.empty() && run.checkpoint_id == id));
  });
}

std::uint64_t image_bytes_of(const RestoreContext& c) {
  const json bytes = c.record.value("image_bytes", json());
  return bytes.is_number_unsigned() ? bytes.get<std::uint64_t>() : 0;
}

diagnosis::Facts facts_of(const RestoreContext& c, const Result<void>&) {
  diagnosis::Facts facts;
  facts.restored = c.outcome.stats;
  facts.connections =
      restore_options(to_options(c.asked.options()), c.record, c.runtime_kind).tcp_established;
  const pid_t pid = c.outcome.process.pid;
  if (pid <= 0) return facts;
  facts.target_quota = quota_of(pid);
  // A runtime runs CRIU in the cgroup of the container that it restores.
  if (!c.container.empty()) {
    facts.priority = priority_of(pid);
    facts.kymod_quota = facts.target_quota;
  }
  return facts;
}

std::string images_of(const RestoreContext& c) {
  return c.images;
}

void conclude(RestoreContext& c, const Result<void>& result) {
  if (!c.counts) return;
  const bool refused = result_of(result, c.begun) == RequestResult::refused;
  const std::string& directory = c.directory.empty() ? c.asked.directory() : c.directory;
  std::string owner = c.job ? history_owner(*c.job) : "";
  if (refused && owner.empty()) {
    owner = owner_in(c.parts.store, directory);
    if (owner.empty()) owner = owner_of_copy(c, result.error());
  }
  note_ending(c, result, owner, false, refused ? checkpoint_in(c.parts.store, directory) : "");
  if (c.job && !refused) add_run(c, result);
  json about = json::object();
  if (c.outcome.stats) about["stats"] = to_json(*c.outcome.stats);
  if (c.away_ns != 0) about["away_ns"] = c.away_ns;
  c.end_recording(result, std::move(about));
  if (!result) drop_new_job(c);
  if (c.parts.store.unstored() > 0) c.note.keep();
  c.note = {};
}

v1::RestoreResponse response_of(const RestoreContext& c) {
  v1::RestoreResponse response;
  response.set_pid(c.outcome.process.pid);
  response.set_directory(c.directory);
  response.set_away_ns(c.away_ns);
  response.set_container_name(c.container_name);
  fill_response(response, c, c.outcome, c.runtime_kind, c.container);
  return response;
}

}  // namespace kymo::daemon
