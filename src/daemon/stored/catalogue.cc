#include "daemon/stored/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "checkpoint/runtimes/table.h"
#include "daemon/request/run_record.h"
#include "daemon/state/stats_json.h"
#include "daemon/stored/gone.h"

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
    case store::CheckpointState::unconfirmed:
      return v1::Checkpoint::UNCONFIRMED;
    case store::CheckpointState::failed:
      return v1::Checkpoint::FAILED;
  }
  return v1::Checkpoint::STATE_UNSPECIFIED;
}

std::map<std::string, std::string> names_by_id(store::Store& store) {
  std::map<std::string, std::string> names;
  for (const store::Job& job : store.jobs()) names[job.id] = job.name;
  return names;
}

// Returns the name of the program whose history this owner has. Empty if the owner is no program.
std::string program_of(const std::string& owner) {
  if (!owner.starts_with(kProgramOwner)) return {};
  const std::string command = owner.substr(kProgramOwner.size());
  const std::string path = command.substr(0, command.find(' '));
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: the whole path
}

// Finds the owner of a history that is no job. `name` is "runc:web" or "podman:shop", a whole
// command line, or the name of a program that was dumped with only one command line.
// Errors: not_found; invalid_argument: the program was dumped with several command lines.
Result<std::string> owner_named(store::Store& store, const std::string& name) {
  const Result<std::vector<store::Run>> runs = store.runs({}, store::RunKind::dump);
  if (!runs) return runs.error();
  std::set<std::string> owners;
  for (const store::Run& run : *runs) owners.insert(run.owner);
  // A job of that name was deleted.
  if (std::string job = std::string(kJobOwner) + name; owners.contains(job)) return job;
  std::vector<std::string> of_program;
  for (const std::string& owner : owners) {
    const bool whole = owner == name || owner == std::string(kProgramOwner) + name;
    if (whole && owner.find(':') != std::string::npos) return owner;
    if (!name.empty() && program_of(owner) == name) of_program.push_back(owner);
  }
  if (of_program.size() == 1) return of_program.front();
  if (of_program.empty()) {
    return Error{Code::not_found, "no job or program named " + name + " was dumped"};
  }
  std::string all;
  for (const std::string& owner : of_program) {
    all += (all.empty() ? "'" : ", '") + owner.substr(kProgramOwner.size()) + "'";
  }
  return Error{Code::invalid_argument,
               "history of " + name +
                   ": it was dumped with several command lines: name one of them: " + all};
}

// The job of the container that a text such as "podman:shop" names, whatever the job is named. Nothing if it names none.
std::optional<store::Job> job_of_container_named(const Parts& parts, const std::string& text) {
  const std::optional<runtime::ContainerName> asked = runtime::container_name_in(text);
  if (!asked) return std::nullopt;
  const Result<runtime::Container> found = parts.runtimes.of(asked->kind).find(asked->name);
  if (found) {
    std::optional<store::Job> its = parts.jobs.of_container({asked->kind, found->id});
    if (its) return its;
  }
  // The container does not run, or is gone. runc and containerd have no other id than the name.
  std::optional<store::Job> by_id = parts.jobs.of_container({asked->kind, asked->name});
  if (by_id) return by_id;
  // Of podman and Docker the job has the container's name, unless it was given another one.
  Result<store::Job> named = parts.jobs.find(asked->name);
  if (!named) return std::nullopt;
  const Result<std::optional<ContainerOf>> its = parts.jobs.containers().of(named->id);
  const bool same = its && *its && (*its)->kind == asked->kind;
  return same ? std::optional(*std::move(named)) : std::nullopt;
}

// The job with this id or name, or of a container as above.
// Errors: not_found.
Result<store::Job> job_asked_for(const Parts& parts, const std::string& text) {
  Result<store::Job> job = parts.jobs.find(text);
  if (job) return job;
  std::optional<store::Job> its = job_of_container_named(parts, text);
  return its ? Result<store::Job>(*std::move(its)) : job;
}

// The newest dump of a container that is no job, such as "podman:shop", of which the checkpoint still exists.
std::optional<store::Checkpoint> newest_of_container(store::Store& store, const std::string& text) {
  if (!runtime::container_name_in(text)) return std::nullopt;
  const Result<std::vector<store::Run>> runs = store.runs(text, store::RunKind::dump);
  if (!runs) return std::nullopt;
  for (std::size_t left = runs->size(); left > 0; --left) {  // the oldest is the first
    Result<store::Checkpoint> checkpoint = store.checkpoint((*runs)[left - 1].checkpoint_id);
    if (checkpoint) return *std::move(checkpoint);
  }
  return std::nullopt;
}

v1::InspectResponse seen_of(const Parts& parts, const v1::Job& job) {
  v1::InspectResponse out;
  *out.mutable_job() = job;
  for (const store::Checkpoint& one : parts.store.checkpoints(job.id())) {
    *out.add_checkpoints() = to_api(one, job.name());
  }
  return out;
}

v1::InspectResponse seen_of(const Parts& parts, const store::Checkpoint& checkpoint) {
  v1::InspectResponse out;
  const Result<store::Job> owner = parts.store.job(checkpoint.job_id);
  *out.mutable_checkpoint() = to_api(checkpoint, owner ? owner->name : "");
  return out;
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
  out.set_stood_still_ns(checkpoint.stood_still_ns);
  if (checkpoint.stood_still_ns == 0 && out.has_stats()) {  // stored by an older kymod
    out.set_stood_still_ns(stood_still_ns(out.stats()));
  }
  out.set_error(checkpoint.error);
  return out;
}

Result<v1::CheckpointsResponse> list_checkpoints(const Parts& parts,
                                                 const v1::CheckpointsRequest& request) {
  std::string job_id;
  if (!request.job().empty()) {
    const Result<store::Job> job = job_asked_for(parts, request.job());
    if (!job) return job.error();
    job_id = job->id;
  }
  std::map<std::string, std::string> names = names_by_id(parts.store);
  const std::vector<store::Checkpoint> all = parts.store.checkpoints(job_id);
  const std::map<std::string, std::string> gone = find_gone(all);
  v1::CheckpointsResponse out;
  for (const store::Checkpoint& checkpoint : all) {
    v1::Checkpoint& one = *out.add_checkpoints();
    one = to_api(checkpoint, names[checkpoint.job_id]);
    if (const auto why = gone.find(checkpoint.id); why != gone.end()) {
      one.set_state(v1::Checkpoint::FAILED);
      one.set_error(why->second);
    }
  }
  return out;
}

Result<store::Checkpoint> find_checkpoint(store::Store& store, const std::string& id_or_directory) {
  if (id_or_directory.find('/') == std::string::npos) return store.checkpoint(id_or_directory);
  const std::vector<store::Checkpoint> all = store.checkpoints();
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& checkpoint) {
    return checkpoint.directory == id_or_directory;
  });
  if (found != all.rend()) return *found;
  return Error{Code::not_found,
               id_or_directory + " is not a checkpoint: kymo checkpoints lists them"};
}

Result<v1::InspectResponse> inspect(const Parts& parts, const v1::InspectRequest& request) {
  const std::vector<v1::Job> jobs = parts.jobs.list();
  const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const v1::Job& one) {
    return one.id() == request.target() || one.name() == request.target();
  });
  if (job != jobs.end()) return seen_of(parts, *job);
  const Result<store::Checkpoint> checkpoint = find_checkpoint(parts.store, request.target());
  if (checkpoint) return seen_of(parts, *checkpoint);
  if (checkpoint.error().code != Code::not_found || request.target().find('/') == 0) {
    return checkpoint.error();
  }
  if (const auto its = job_of_container_named(parts, request.target()); its) {
    const auto listed = std::find_if(jobs.begin(), jobs.end(),
                                     [&](const v1::Job& one) { return one.id() == its->id; });
    if (listed != jobs.end()) return seen_of(parts, *listed);
  }
  if (const auto newest = newest_of_container(parts.store, request.target()); newest) {
    return seen_of(parts, *newest);
  }
  return Error{Code::not_found, "there is no job and no checkpoint " + request.target() +
                                    ": kymo ps and kymo checkpoints list them"};
}

Result<v1::HistoryResponse> history_of(const Parts& parts, const v1::HistoryRequest& request) {
  std::string owner;
  std::string name;
  if (const Result<store::Job> job = parts.jobs.find(request.job()); job) {
    owner = history_owner(*job);
    name = job->name;
  } else if (const Result<std::string> found = owner_named(parts.store, request.job()); !found) {
    if (found.error().code != Code::not_found) return found.error();
    const std::optional<store::Job> its = job_of_container_named(parts, request.job());
    if (!its) return job.error();
    owner = history_owner(*its);
    name = its->name;
  } else {
    owner = name = *found;
    if (name.starts_with(kJobOwner)) name.erase(0, std::string_view(kJobOwner).size());
  }
  const auto kind = request.restores() ? store::RunKind::restore : store::RunKind::dump;
  const Result<std::vector<store::Run>> runs = parts.store.runs(owner, kind);
  if (!runs) return runs.error();
  // Refused requests do not count, so that they take the place of no dump or restore.
  auto first = runs->begin();
  if (request.last() != 0) {
    first = runs->end();
    for (std::size_t left = request.last(); first != runs->begin() && left > 0;) {
      if (!(--first)->refused) --left;
    }
  }
  v1::HistoryResponse out;
  out.set_job(name);
  for (; first != runs->end(); ++first) *out.add_runs() = to_api(*first);
  return out;
}

}  // namespace kymo::daemon
