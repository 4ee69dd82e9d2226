#include "daemon/target.h"

#include <utility>

#include "probe/process.h"
#include "runtime/process_checks.h"

namespace kymo::daemon {
namespace {

Result<void> look_at_process(const std::string& verb, Target& target) {
  const std::string tried = verb + " process " + std::to_string(target.process.pid);
  if (target.process.pid <= 0) {
    return Error{Code::invalid_argument, tried + ": a pid is a number above 0"};
  }
  const Result<probe::Process> seen = probe::read_process(target.process.pid);
  if (!seen) return Error{seen.error().code, tried + ": " + seen.error().message};
  if (seen->kernel_thread) {
    return Error{Code::invalid_argument, tried + ": it is the kernel thread [" + seen->name +
                                             "]; only processes of programs can be dumped"};
  }
  if (target.process.start_ticks == 0) target.process.start_ticks = seen->start_ticks;
  target.name = seen->name;
  target.command = seen->command;
  return {};
}

Result<void> find_container(const Parts& parts, const std::string& verb, const std::string& name,
                            Target& target) {
  Result<runtime::Container> found = runtime_of(parts, target.kind).find(name);
  if (!found) {
    return Error{found.error().code, verb + " " + found.error().message, found.error().errno_value};
  }
  target.process = found->process;
  target.name = found->name;
  target.command = std::move(found->command);
  target.container = std::move(found->id);
  target.bundle = std::move(found->bundle);
  target.frozen = found->frozen;
  target.read_only_root = found->read_only_root;
  return {};
}

Result<void> find_job(const Parts& parts, const std::string& verb, const std::string& name,
                      Target& target) {
  parts.jobs.refresh();
  Result<store::Job> job = parts.jobs.find(name);
  if (!job) return job.error();
  if (job->state != store::JobState::running) {
    return Error{Code::failed_precondition, verb + " job " + job->name +
                                                ": it does not run, it is " +
                                                std::string(store::name_of(job->state))};
  }
  target.process = {job->pid, job->start_ticks};
  target.job = *job;
  const Result<std::optional<ContainerOf>> container = parts.jobs.containers().of(job->id);
  if (!container) {
    return Error{container.error().code,
                 verb + " job " + job->name + ": " + container.error().message};
  }
  if (*container) {
    target.kind = (*container)->kind;
    return find_container(parts, verb, (*container)->id, target);
  }
  return look_at_process(verb, target);
}

}  // namespace

std::string Target::text() const {
  if (container.empty()) return "process " + std::to_string(process.pid);
  return std::string(runtime::name_of(kind)) + " container " + name;
}

Result<Target> find_target(const Parts& parts, const std::string& verb, const v1::Target& asked) {
  Target target;
  Result<void> found;
  switch (asked.target_case()) {
    case v1::Target::kPid:
      target.process.pid = asked.pid();
      found = look_at_process(verb, target);
      break;
    case v1::Target::kJob:
      found = find_job(parts, verb, asked.job(), target);
      break;
    case v1::Target::kRunc:
      target.kind = runtime::Kind::runc;
      found = find_container(parts, verb, asked.runc(), target);
      break;
    case v1::Target::kPodman:
      target.kind = runtime::Kind::podman;
      found = find_container(parts, verb, asked.podman(), target);
      break;
    case v1::Target::TARGET_NOT_SET:
      found = Error{Code::invalid_argument,
                    verb + ": neither a pid, nor a job, nor a container was given"};
  }
  if (!found) return found.error();
  if (!target.job && !target.container.empty()) {
    parts.jobs.refresh();  // its process may be another than the job's, which follows it
    target.job = parts.jobs.of_container({target.kind, target.container});
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
  if (target->container.empty()) {
    const auto program = runtime::check_program("adopt " + target->text(), target->process);
    if (!program) return program.error();
  }
  std::string name = request.name();
  if (name.empty() && !target->container.empty()) name = target->name;
  Result<store::Job> job = parts.jobs.adopt(target->process, name);
  if (!job) {
    return Error{job.error().code, "adopt " + target->text() + ": " + job.error().message};
  }
  if (!target->container.empty()) {
    if (Result<void> noted =
            parts.jobs.containers().note(job->id, {target->kind, target->container});
        !noted) {
      return noted.error();
    }
  }
  return job;
}

runtime::Runtime& runtime_of(const Parts& parts, runtime::Kind kind) {
  return kind == runtime::Kind::runc     ? parts.runc
         : kind == runtime::Kind::podman ? parts.podman
                                         : parts.runtime;
}

v1::Runtime to_api(runtime::Kind kind) {
  switch (kind) {
    case runtime::Kind::process:
      return v1::PROCESS;
    case runtime::Kind::runc:
      return v1::RUNC;
    case runtime::Kind::podman:
      return v1::PODMAN;
  }
  return v1::RUNTIME_UNSPECIFIED;
}

Result<runtime::Kind> kind_of(v1::Runtime runtime) {
  switch (runtime) {
    case v1::RUNTIME_UNSPECIFIED:
    case v1::PROCESS:
      return runtime::Kind::process;
    case v1::RUNC:
      return runtime::Kind::runc;
    case v1::PODMAN:
      return runtime::Kind::podman;
    default:
      return Error{Code::invalid_argument,
                   "runtime " + std::to_string(runtime) + ": there are PROCESS, RUNC and PODMAN"};
  }
}

Result<runtime::Kind> kind_named(const std::string& name) {
  if (name.empty()) return runtime::Kind::process;
  if (const auto kind = runtime::kind_named(name)) return *kind;
  return Error{Code::unimplemented, "it was made by the runtime '" + name +
                                        "', and this kymod knows process, runc and podman"};
}

runtime::CheckpointOptions to_options(const v1::CheckpointOptions& options) {
  return {options.tcp_established(),
          options.shell_job(),
          options.file_locks(),
          {options.external().begin(), options.external().end()},
          static_cast<int>(options.log_level()),
          options.external_unix_sockets(),
          options.root()};
}

}  // namespace kymo::daemon
