#include "daemon/request/target.h"

#include <chrono>
#include <utility>

#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "daemon/state/kinds.h"

namespace kymo::daemon {
namespace {

// Lets the runtime of the target's kind find the process or container with this name.
Result<void> find_named(const Parts& parts, const std::string& verb, const std::string& name,
                        Target& target) {
  Result<runtime::Container> found = parts.runtimes.of(target.kind).find(name);
  if (!found) {
    return Error{found.error().code, verb + " " + found.error().message, found.error().errno_value};
  }
  static_cast<runtime::Container&>(target) = *std::move(found);
  return {};
}

Result<void> find_container(const Parts& parts, const std::string& verb, v1::Runtime runtime,
                            const std::string& name, Target& target) {
  const Result<runtime::Kind> kind = kind_of(runtime);
  if (!kind) return Error{kind.error().code, verb + ": " + kind.error().message};
  if (!runtime::row_of(*kind).containers) {
    return Error{Code::invalid_argument, verb + " container " + name +
                                             ": name its runtime: " + runtime::runtime_names(true)};
  }
  target.kind = *kind;
  return find_named(parts, verb, name, target);
}

Result<void> find_job(const Parts& parts, const std::string& verb, const std::string& name,
                      Target& target) {
  parts.jobs.refresh();
  Result<store::Job> job = parts.jobs.find(name);
  if (!job) return job.error();
  if (job->state != store::JobState::running) {
    return Error{Code::failed_precondition, verb + " job " + job->name +
                                                ": it is not running (it is " +
                                                std::string(store::name_of(job->state)) + ")"};
  }
  target.job = *job;
  const Result<std::optional<ContainerOf>> container = parts.jobs.containers().of(job->id);
  if (!container) {
    return Error{container.error().code,
                 verb + " job " + job->name + ": " + container.error().message};
  }
  if (*container) {
    target.kind = (*container)->kind;
    return find_named(parts, verb, (*container)->id, target);
  }
  Result<void> found = find_named(parts, verb, std::to_string(job->pid), target);
  target.process.start_ticks = job->start_ticks;  // another process may have the pid now
  return found;
}

}  // namespace

std::string Target::text() const {
  if (id.empty()) return "process " + std::to_string(process.pid);
  return std::string(runtime::name_of(kind)) + " container " + name;
}

v1::Target target_of(const v1::DumpRequest& request) {
  v1::Target target;
  if (request.has_pid()) target.set_pid(request.pid());
  if (request.has_job()) target.set_job(request.job());
  if (request.has_runc()) target.set_runc(request.runc());
  if (request.has_podman()) target.set_podman(request.podman());
  if (request.has_container()) *target.mutable_container() = request.container();
  return target;
}

Result<Target> find_target(const Parts& parts, const std::string& verb, const v1::Target& asked) {
  Target target;
  Result<void> found;
  switch (asked.target_case()) {
    case v1::Target::kPid:
      found = find_named(parts, verb, std::to_string(asked.pid()), target);
      break;
    case v1::Target::kJob:
      found = find_job(parts, verb, asked.job(), target);
      break;
    case v1::Target::kRunc:
      found = find_container(parts, verb, v1::RUNC, asked.runc(), target);
      break;
    case v1::Target::kPodman:
      found = find_container(parts, verb, v1::PODMAN, asked.podman(), target);
      break;
    case v1::Target::kContainer:
      found = find_container(parts, verb, asked.container().runtime(), asked.container().name(),
                             target);
      break;
    case v1::Target::TARGET_NOT_SET:
      found = Error{Code::invalid_argument,
                    verb + ": neither a pid, nor a job, nor a container was given"};
  }
  if (!found) return found.error();
  if (!target.job && !target.id.empty()) {
    parts.jobs.refresh();  // its process may have changed; this updates the job
    target.job = parts.jobs.of_container({target.kind, target.id});
  }
  if (!target.job) target.job = parts.jobs.of_process(target.process);
  return target;
}

Result<store::Job> adopt(const Parts& parts, const v1::AdoptRequest& request) {
  Result<Target> target = find_target(parts, "adopt", request.target());
  if (!target) return target.error();
  if (target->job) {
    return Error{Code::failed_precondition,
                 "adopt " + target->text() + ": it is job " + target->job->name + " already"};
  }
  if (target->id.empty()) {
    const auto program = runtime::check_program("adopt " + target->text(), target->process);
    if (!program) return program.error();
  }
  std::string name = request.name();
  if (name.empty() && !target->id.empty()) name = target->name;
  Result<store::Job> job = parts.jobs.adopt(target->process, name);
  if (!job) {
    return Error{job.error().code, "adopt " + target->text() + ": " + job.error().message};
  }
  if (!target->id.empty()) {
    if (Result<void> noted = parts.jobs.containers().note(job->id, {target->kind, target->id});
        !noted) {
      return noted.error();
    }
  }
  return job;
}

std::string lock_name_of(const Parts& parts, runtime::Kind kind, const std::string& container) {
  const std::string root = runtime::row_of(kind).has_bundles ? " in " + parts.config.runc_root : "";
  return "container " + std::string(runtime::name_of(kind)) + ":" + container + root;
}

Result<runtime::DumpLock> lock_target(const Parts& parts, const std::string& verb,
                                      const Target& target) {
  constexpr std::chrono::milliseconds kLookedAtWithin{500};
  const auto failed = [&](const Error& why) {
    return Error{why.code, verb + " " + target.text() + ": " + why.message, why.errno_value};
  };
  Result<runtime::DumpLock> lock = runtime::lock_for_dump(target.process, kLookedAtWithin);
  if (!lock && lock.error().code != Code::not_found &&
      lock.error().code != Code::permission_denied) {
    return failed(lock.error());
  }
  runtime::DumpLock all = lock ? *std::move(lock) : runtime::DumpLock();
  if (target.id.empty()) return all;
  Result<FileDescriptor> container =
      runtime::lock_for_restore({lock_name_of(parts, target.kind, target.id)});
  if (!container) return failed(container.error());
  all.push_back(*std::move(container));
  return all;
}

Result<runtime::CriuChoice> crius_of(const Parts& parts, runtime::Kind kind) {
  Result<std::optional<runtime::CriuProgram>> fixed = parts.runtimes.of(kind).fixed_criu();
  if (!fixed) return fixed.error();
  if (!*fixed) return parts.crius;
  return runtime::CriuChoice({**fixed}, parts.crius.kernel());
}

runtime::CheckpointOptions restore_options(runtime::CheckpointOptions asked,
                                           const nlohmann::json& record, runtime::Kind kind) {
  const nlohmann::json told = record.value("options", nlohmann::json::object());
  if (!told.is_object()) return asked;
  const auto was_told = [&](const char* name) {
    return told.value(name, nlohmann::json()) == nlohmann::json(true);
  };
  asked.tcp_established |= was_told("tcp_established");
  asked.shell_job |= was_told("shell_job");
  asked.file_locks |= was_told("file_locks");
  asked.external_unix_sockets |= was_told("external_unix_sockets");
  asked.tcp_close |= was_told("tcp_close");
  if (asked.cgroups == criu::Cgroups::unset) {
    asked.cgroups = criu::cgroups_named(text_of(told, "cgroups"));
  }
  // The root of this machine and no other: anybody may have written the record.
  if (asked.root.empty() && !runtime::row_of(kind).containers && text_of(told, "root") == "/") {
    asked.root = "/";
  }
  return asked;
}

runtime::CheckpointOptions to_options(const v1::CheckpointOptions& from) {
  runtime::CheckpointOptions options;
  options.tcp_established = from.tcp_established();
  options.shell_job = from.shell_job();
  options.file_locks = from.file_locks();
  options.external = {from.external().begin(), from.external().end()};
  options.log_level = static_cast<int>(from.log_level());
  options.external_unix_sockets = from.external_unix_sockets();
  options.root = from.root();
  options.ghost_limit = from.ghost_limit();
  options.link_remap = from.link_remap();
  options.tcp_close = from.tcp_close();
  options.skip_in_flight = from.skip_in_flight();
  if (v1::CgroupsMode_IsValid(from.cgroups())) {
    options.cgroups = static_cast<criu::Cgroups>(from.cgroups());
  }
  if (v1::NetworkLock_IsValid(from.network_lock())) {
    options.network_lock = static_cast<criu::NetworkLock>(from.network_lock());
  }
  if (v1::FileValidation_IsValid(from.file_validation())) {
    options.file_validation = static_cast<criu::FileValidation>(from.file_validation());
  }
  for (const v1::InheritedFile& file : from.inherit_fd()) {
    options.inherited.push_back({file.resource(), file.path()});
  }
  return options;
}

}  // namespace kymo::daemon
