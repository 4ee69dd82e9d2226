#include "daemon/request/restored_job.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json_object.h"
#include "daemon/request/run_record.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::daemon {
namespace {

using nlohmann::json;

// Keeps the job from being deleted, and its state from being changed. It may have been deleted meanwhile.
Result<void> claim_job(RestoreContext& c, const std::string& id, const std::string& name) {
  c.job_claim = c.parts.claims.claim("job:" + id);
  if (!c.job_claim) {
    return Error{Code::failed_precondition, "restore " + c.directory +
                                                ": another request restores or deletes job " +
                                                name + ": wait for that to end"};
  }
  Result<store::Job> now = c.parts.store.job(id);
  c.job.reset();
  if (now) {
    c.job = *std::move(now);
  } else if (now.error().code != Code::not_found) {
    return now.error();
  }
  return {};
}

// Lists the job of a checkpoint of which this kymod knows no job. Its claim is held.
Result<void> take_over(RestoreContext& c, const std::string& id) {
  store::Job job;
  job.id = id;
  job.name = text_of(member(c.record, "job"), "name");
  for (const json& word : member(c.record, "command")) {
    if (word.is_string()) job.command.push_back(word.get<std::string>());
  }
  const std::string folder = c.parts.jobs.folder_of(id);
  for (const std::string& path : c.in_images.outputs) {
    const std::string name = report::output_file_at(c.record, path);
    if (name == "stdout") job.stdout_path = folder + "/" + name;
    if (name == "stderr") job.stderr_path = folder + "/" + name;
  }
  Result<store::Job> listed = c.parts.jobs.take_over(std::move(job));
  if (!listed) {
    return Error{listed.error().code, "restore " + c.directory + ": " + listed.error().message,
                 listed.error().errno_value};
  }
  c.job = *std::move(listed);
  c.job_is_new = true;
  return {};
}

// Makes an empty file, unless there is one. Returns whether it did.
Result<bool> make_if_missing(const std::string& folder, const std::string& path) {
  if (Result<void> made = make_job_folder(folder); !made) return made.error();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const FileDescriptor file(::open(path.c_str(), kFlags, 0600));
  if (file.valid()) return true;
  if (errno == EEXIST) return false;
  Error failed = system_error("make the job's output file " + path, errno);
  failed.message += advice_on_full_disk(path, failed.errno_value);
  return failed;
}

bool is_replaced_by_user(const RestoreContext& c, const std::string& resource) {
  const auto& asked = c.asked.options().inherit_fd();
  return std::any_of(asked.begin(), asked.end(),
                     [&](const auto& file) { return file.resource() == resource; });
}

void note_container(RestoreContext& c) {
  if (c.container.empty()) return;
  c.warn_unless(c.parts.jobs.containers().note(c.job->id, {c.runtime_kind, c.container}));
}

// A process that runs is not restored once more: its pid is in use.
Result<void> check_ended(const RestoreContext& c, const store::Job& job) {
  if (!c.container.empty() || life_of(job) != probe::Life::runs) return {};
  return Error{Code::failed_precondition,
               "restore " + c.directory + ": job " + job.name + " runs already (its pid " +
                   std::to_string(job.pid) + " is in use); to replace it by this checkpoint, end " +
                   "it first: kymo kill " + job.name + " --wait"};
}

}  // namespace

Result<void> check_job(RestoreContext& c) {
  const Result<store::Job> job = c.parts.store.job(text_of(member(c.record, "job"), "id"));
  return job ? check_ended(c, *job) : Result<void>();
}

Result<void> find_job(RestoreContext& c) {
  const std::string id = text_of(member(c.record, "job"), "id");
  const bool process = !runtime::row_of(c.runtime_kind).containers;
  if (!id.empty()) {
    const Result<store::Job> job = c.parts.store.job(id);
    if (!job && job.error().code != Code::not_found) return job.error();
    if (job) c.job = *job;
  }
  // If the job's container still runs, this restore makes a copy of it under another id. The job
  // stays with the running container.
  if (c.job && !c.container.empty()) {
    const probe::Life life = life_of(*c.job);
    if (life == probe::Life::unknown) {
      return Error{Code::unavailable, "restore " + c.directory +
                                          ": kymod cannot find out now whether process " +
                                          std::to_string(c.job->pid) + " of job " + c.job->name +
                                          " still runs: try again"};
    }
    if (life == probe::Life::runs) c.job.reset();
  }
  // The container may have become a job after the dump, or have been released and adopted again.
  if (!c.job && !c.container.empty()) {
    c.job = c.parts.jobs.of_container({c.runtime_kind, c.container});
  }
  const bool is_new = process && is_job_id(id);  // anybody may have written the record
  if (!c.job && !is_new) return {};
  Result<void> claimed =
      c.job ? claim_job(c, std::string(c.job->id), std::string(c.job->name)) : claim_job(c, id, id);
  if (claimed && !c.job && is_new) claimed = take_over(c, id);
  if (!claimed || !c.job) return claimed;
  if (Result<void> ended = check_ended(c, *c.job); !ended) return ended;
  c.handover.hold(c.parts.jobs.hold(c.job->id, Jobs::Doing::restore));
  c.progress.set_target(0, c.job->name);
  return {};
}

Result<void> find_output(RestoreContext& c) {
  if (!c.job) return {};
  for (const std::string& path : c.in_images.outputs) {
    const std::string name = report::output_file_at(c.record, path);
    if (name.empty() || is_replaced_by_user(c, path.substr(1))) continue;
    const std::string& own = name == "stdout" ? c.job->stdout_path : c.job->stderr_path;
    if (own.empty()) continue;
    const Result<bool> made = make_if_missing(c.parts.jobs.folder_of(c.job->id), own);
    if (!made) {
      return Error{made.error().code, "restore " + c.directory + ": " + made.error().message,
                   made.error().errno_value};
    }
    if (*made) c.outputs_made.push_back(own);
    if (own != path) c.outputs_now.push_back({path.substr(1), own, true});
  }
  if (!c.outputs_made.empty()) {
    c.warnings.push_back("what job " + c.job->name +
                         " wrote before its dump is not here; kymo attach " + c.job->name +
                         " shows what it writes from now on");
  }
  return {};
}

Result<void> register_job(RestoreContext& c) {
  if (c.job) {
    give_process(*c.job, c.outcome.process);
    c.job->state = store::JobState::running;
    c.job->exit_status.reset();
    c.warn_unless(c.parts.store.update_job(*c.job));
    if (std::string warning = unstored_warning(c.parts.store); !warning.empty()) {
      c.warnings.push_back(std::move(warning));
    }
    note_container(c);
    return {};
  }
  // The new job has the name of the container, by which its user asks for it, or else that of the program.
  const std::string name = runtime::row_of(c.runtime_kind).has_bundles
                               ? c.container
                               : text_of(member(c.record, "container"), "name");
  const bool is_free = !name.empty() && !c.parts.jobs.find(name);
  Result<store::Job> job = c.parts.jobs.adopt(c.outcome.process, is_free ? name : "");
  if (job) {
    c.job = *job;
    note_container(c);
  } else {
    c.warnings.push_back("the restored process did not become a job: " + job.error().message);
  }
  return {};
}

void drop_new_job(RestoreContext& c) {
  for (const std::string& path : c.outputs_made) ::unlink(path.c_str());
  if (!c.job || !c.job_is_new) return;
  ::rmdir(c.parts.jobs.folder_of(c.job->id).c_str());  // unless it has files of an earlier restore
  if (Result<void> gone = c.parts.store.remove_job(c.job->id, true); !gone) {
    spdlog::error("{}", gone.error().message);
  }
}

}  // namespace kymo::daemon
