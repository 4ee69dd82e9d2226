#include "daemon/request/kill.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::daemon {

Result<void> signal_process(const runtime::ProcessId& process, int signal) {
  const std::string pid = std::to_string(process.pid);
  const FileDescriptor opened(probe::open_process(process.pid));
  if (!opened.valid()) {
    if (errno == ESRCH) return Error{Code::not_found, "its process " + pid + " is gone", ESRCH};
    return system_error("open process " + pid, errno);
  }
  // Check this after the pidfd is open: from now on, the pidfd means the process that is checked
  // here, even if another process gets the pid.
  if (!probe::process_lives(process.pid, process.start_ticks)) {
    return Error{Code::not_found,
                 "its process is gone: pid " + pid + " is unused, or belongs to another process"};
  }
  if (syscall(SYS_pidfd_send_signal, opened.get(), signal, nullptr, 0) == 0) return {};
  if (errno == ESRCH) return Error{Code::not_found, "its process " + pid + " is gone", ESRCH};
  return system_error("send process " + pid + " signal " + std::to_string(signal), errno);
}

Result<v1::KillResponse> kill_job(const Parts& parts, const v1::KillRequest& request) {
  if (request.signal() < 1 || request.signal() > SIGRTMAX) {
    return Error{Code::invalid_argument,
                 "kill: there is no signal " + std::to_string(request.signal())};
  }
  parts.jobs.refresh();
  const Result<store::Job> job = parts.jobs.find(request.job());
  if (!job) return job.error();
  const std::string tried = "kill job " + job->name + ": ";
  if (job->state != store::JobState::running) {
    return Error{Code::failed_precondition, tried + "it is not running (it is " +
                                                std::string(store::name_of(job->state)) + ")"};
  }
  if (job->pid <= 0) return Error{Code::failed_precondition, tried + "it is being started"};
  // CRIU holds a process that is being dumped. A signal could get into the images or disturb CRIU.
  const auto claim = parts.claims.claim("process:" + std::to_string(job->pid));
  if (!claim) {
    return Error{Code::failed_precondition, tried + "it is being dumped: wait for that to end"};
  }
  if (Result<void> sent = signal_process({job->pid, job->start_ticks}, request.signal()); !sent) {
    return Error{sent.error().code, tried + sent.error().message, sent.error().errno_value};
  }
  spdlog::info("kill: job {} (pid {}) was sent signal {}", job->name, job->pid, request.signal());
  v1::KillResponse out;
  *out.mutable_job() = parts.jobs.view(*job);
  return out;
}

}  // namespace kymo::daemon
