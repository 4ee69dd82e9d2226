#include "daemon/request/recorder_control.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/config/allowed_path.h"

namespace kymo::daemon {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list.empty() ? "all" : list;
}

Result<RecorderAction> action_of(const v1::ControlRecorderRequest& request) {
  switch (request.action()) {
    case v1::ControlRecorderRequest::START:
      return RecorderAction::start;
    case v1::ControlRecorderRequest::STOP:
      return RecorderAction::stop;
    case v1::ControlRecorderRequest::SET:
      return RecorderAction::set;
    default:
      return Error{Code::invalid_argument,
                   "recorder: action " + std::to_string(request.action()) + ": no such action"};
  }
}

}  // namespace

v1::Recorder recorder_status(const Recorder& recorder) {
  v1::Recorder out;
  const Config settings = recorder.settings();
  out.set_interval_ns(
      static_cast<std::uint64_t>(std::chrono::nanoseconds(settings.profiling_interval).count()));
  out.set_metrics(list_of(settings.profiling_metrics));
  const std::shared_ptr<const RecorderRun> run = recorder.latest();
  if (run == nullptr) return out;
  const ProfilerStats stats = run->profiler().stats();
  out.set_running(run->running());
  out.set_ticks_due(stats.ticks_due);
  out.set_rows_written(stats.rows_written);
  out.set_ticks_missed(stats.missed());
  out.set_log_path(run->log_path());
  out.set_start_unix_ns(run->info().start_unix_ns);
  out.set_duration_ns(stats.duration_ns);
  out.set_kept_ns(static_cast<std::uint64_t>(run->kept().count()));
  out.set_reach_ns(static_cast<std::uint64_t>(std::min(run->kept(), run->reach()).count()));
  return out;
}

Result<v1::Recorder> control_recorder(const Parts& parts, const v1::ControlRecorderRequest& request,
                                      const char* by) {
  if (request.action() == v1::ControlRecorderRequest::DESCRIBE) {
    return recorder_status(parts.recorder);
  }
  const Result<RecorderAction> action = action_of(request);
  if (!action) return action.error();
  RecorderChange change;
  if (request.has_interval_us()) change.interval_us = request.interval_us();
  change.metrics = request.metrics();
  if (!request.log_path().empty()) {
    Result<std::string> path = allowed_path(parts.config, "record into", request.log_path());
    if (!path) return path.error();
    const auto free = refuse_own_files(parts.config, "record into", *path);
    if (!free) return free.error();
    if (const auto own = own_place("record into", *path); !own) return own.error();
    change.log = std::move(path).value();
  }
  if (Result<void> done = parts.recorder.control(*action, change); !done) return done.error();
  spdlog::info("recorder: {} by {}",
               *action == RecorderAction::start  ? "started"
               : *action == RecorderAction::stop ? "stopped"
                                                 : "set",
               by);
  return recorder_status(parts.recorder);
}

}  // namespace kymo::daemon
