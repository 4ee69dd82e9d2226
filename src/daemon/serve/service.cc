#include "daemon/serve/service.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/config/allowed_path.h"
#include "daemon/recording/profile_keeper.h"
#include "daemon/request/cancel.h"
#include "daemon/request/check.h"
#include "daemon/request/dump.h"
#include "daemon/request/freeze.h"
#include "daemon/request/kill.h"
#include "daemon/request/recorder_control.h"
#include "daemon/request/release.h"
#include "daemon/request/restore.h"
#include "daemon/request/target.h"
#include "daemon/request/watch.h"
#include "daemon/serve/failure_trailer.h"
#include "daemon/serve/status.h"
#include "daemon/serve/timing_trailer.h"
#include "daemon/serve/valid_text.h"
#include "daemon/stored/catalogue.h"
#include "daemon/stored/deletion.h"
#include "daemon/stored/shown_files.h"
#include "kymo/prometheus.h"
#include "kymo/scope.h"
#include "kymo/version.h"
#include "recorder/metrics/unit_names.h"

namespace kymo::daemon {
namespace {

v1::Metric metric_of(const kymo::Metric& metric) {
  v1::Metric out;
  out.set_name(metric.name);
  out.set_prometheus_name(prometheus_name(metric, kPrometheusPrefix));
  out.set_kind(metric.kind == kymo::Kind::gauge ? v1::Metric::GAUGE : v1::Metric::COUNTER);
  out.set_unit(unit_name(metric.unit));
  out.set_help(metric.help);
  for (const Field& field : metric.fields) {
    v1::Metric::Field* to = out.add_fields();
    to->set_name(field.name);
    for (const std::string& value : field.values) to->add_values(value);
  }
  return out;
}

// All metrics of the registry with their present values. The columns of one metric are adjacent.
Result<v1::MetricsResponse> read_metrics(Registry& registry) {
  Result<std::unique_ptr<Sampler>> sampler = registry.sampler({});
  if (!sampler) return sampler.error();
  const std::vector<Column>& columns = (*sampler)->columns();
  std::vector<std::uint64_t> values(columns.size());
  (*sampler)->read(values.data());
  v1::MetricsResponse response;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == 0 || columns[i].metric->name != columns[i - 1].metric->name) {
      *response.add_metrics() = metric_of(*columns[i].metric);
    }
    v1::Metric::Value* value = response.mutable_metrics(response.metrics_size() - 1)->add_values();
    for (const std::string& field : columns[i].field_values) value->add_field_values(field);
    value->set_value(values[i]);
  }
  return response;
}

// Refuses options that give a restored process files of the machine.
Result<void> refuse_for_group(const v1::RestoreRequest& request) {
  const v1::CheckpointOptions& options = request.options();
  const char* given = nullptr;
  if (!options.root().empty()) given = "--root";
  if (!options.external().empty()) given = "--external";
  if (!options.inherit_fd().empty()) given = "--inherit-fd";
  if (given == nullptr) return {};
  return Error{Code::permission_denied,
               "restore " + request.directory() + ": " + given +
                   " gives the restored process files of this machine: only root may use it"};
}

// What does not work now, one line each.
std::vector<std::string> troubles_of(const Parts& parts) {
  std::vector<std::string> troubles;
  if (const std::size_t changes = parts.store.unstored(); changes != 0) {
    troubles.push_back(std::to_string(changes) + (changes == 1 ? " change is" : " changes are") +
                       " kept only in memory: " + parts.store.trouble());
  }
  if (const std::size_t held = parts.unconfirmed.held(); held != 0) {
    troubles.push_back(std::to_string(held) +
                       (held == 1 ? " process stands still" : " processes stand still") +
                       ", held by a CRIU that was killed but cannot end: see kymo ps");
  }
  if (const std::size_t dumps = parts.unconfirmed.size(); dumps != 0) {
    troubles.push_back("the outcome of " + std::to_string(dumps) +
                       (dumps == 1 ? " dump" : " dumps") +
                       " is not known yet: see kymo checkpoints");
  }
  if (parts.profile_keeper) {
    if (const std::string why = parts.profile_keeper->not_kept(); !why.empty()) {
      troubles.push_back("stack profiles are not kept: " + why);
    }
    if (std::string note = parts.profile_keeper->clock_note(); !note.empty()) {
      troubles.push_back("stack profiles: " + std::move(note));
    }
  }
  return troubles;
}

void add_failure(grpc::ServerContext& context, const Error& error) {
  context.AddTrailingMetadata(std::string(kFailureTrailer), failure_trailer(error));
}

}  // namespace

bool Service::enter() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  ++running_;
  return true;
}

void Service::leave() {
  const std::lock_guard lock(mutex_);
  --running_;
  left_.notify_all();
}

void Service::close() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  if (running_ != 0) spdlog::info("waiting for {} running requests", running_);
}

bool Service::drain(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return left_.wait_until(lock, until, [this] { return running_ == 0; });
}

template <class Response, class Work>
grpc::Status Service::serve(const char* verb, const google::protobuf::Message& request,
                            Response* response, Work&& work) {
  if (!enter())
    return status_of({Code::unavailable, "kymod is stopping: try again when it is back"});
  Result<Response> result = Error{Code::internal, std::string(verb) + ": not done"};
  try {
    const Result<void> valid = check_texts(verb, request);
    result = valid ? work() : valid.error();
  } catch (const std::exception& error) {  // no exception may reach gRPC
    result = Error{Code::internal, std::string(verb) + ": " + error.what()};
  }
  leave();
  if (!result) {
    spdlog::warn("{}: {}", verb, result.error().message);
    return status_of(result.error());
  }
  *response = std::move(result).value();
  make_valid_utf8(*response);
  return grpc::Status::OK;
}

template <class Response, class Work>
grpc::Status Service::serve_timed(const char* verb, grpc::ServerContext* context,
                                  const google::protobuf::Message& request, Response* response,
                                  Work&& work) {
  if (!parts_.config.timing) {
    return serve(verb, request, response, [&] { return work(nullptr); });
  }
  // Shared: a request may go on after its answer.
  const auto tree = std::make_shared<ScopeTree>(ScopeName{std::string_view{verb}});
  const EnterScope here(*tree);
  grpc::Status status = serve(verb, request, response, [&] { return work(tree); });
  if (!status.ok()) tree->fail(status.error_message());
  tree->end();
  if (spans_ != nullptr) spans_->offer(*tree);
  if (std::string trailer = timing_trailer(*tree, status.error_message()); !trailer.empty()) {
    context->AddTrailingMetadata(std::string(kTimingTrailer), trailer);
  }
  return status;
}

grpc::Status Service::Run(grpc::ServerContext* context, const v1::RunRequest* request,
                          v1::RunResponse* response) {
  return serve_timed("run", context, *request, response,
                     [&](const std::shared_ptr<ScopeTree>&) -> Result<v1::RunResponse> {
                       v1::RunRequest asked = *request;
                       if (!asked.bundle().empty()) {
                         Result<std::string> bundle = allowed_path(
                             parts_.config, "start a container of the bundle", asked.bundle());
                         if (!bundle) return bundle.error();
                         asked.set_bundle(*std::move(bundle));
                       }
                       Result<store::Job> job = parts_.jobs.run(parts_.runtimes, asked);
                       if (!job) return job.error();
                       spdlog::info("run: job {} is pid {}", job->name, job->pid);
                       v1::RunResponse out;
                       *out.mutable_job() = parts_.jobs.view(*job);
                       return out;
                     });
}

grpc::Status Service::Adopt(grpc::ServerContext*, const v1::AdoptRequest* request,
                            v1::RunResponse* response) {
  return serve("adopt", *request, response, [&]() -> Result<v1::RunResponse> {
    const Result<store::Job> job = adopt(parts_, *request);
    if (!job) return job.error();
    spdlog::info("adopt: pid {} is job {}", job->pid, job->name);
    v1::RunResponse out;
    *out.mutable_job() = parts_.jobs.view(*job);
    return out;
  });
}

grpc::Status Service::Dump(grpc::ServerContext* context, const v1::DumpRequest* request,
                           v1::DumpResponse* response) {
  return serve_timed("dump", context, *request, response,
                     [&](const std::shared_ptr<ScopeTree>& timing) {
                       Result<v1::DumpResponse> out = dump(parts_, *request, timing);
                       if (!out) {
                         add_failure(*context, out.error());
                       } else {
                         spdlog::info("dump: pid {} is in {}", out->pid(), out->directory());
                       }
                       return out;
                     });
}

grpc::Status Service::Check(grpc::ServerContext*, const v1::CheckRequest* request,
                            v1::CheckResponse* response) {
  return serve("check", *request, response, [&] { return check_target(parts_, *request); });
}

grpc::Status Service::Restore(grpc::ServerContext* context, const v1::RestoreRequest* request,
                              v1::RestoreResponse* response) {
  return serve_timed(
      "restore", context, *request, response, [&](const std::shared_ptr<ScopeTree>& timing) {
        const Result<void> may =
            callers_ == Callers::group ? refuse_for_group(*request) : Result<void>();
        Result<v1::RestoreResponse> out = may ? restore(parts_, *request, timing) : may.error();
        if (!out) {
          add_failure(*context, out.error());
        } else if (request->rehearse()) {
          spdlog::info("restore: {} was rehearsed", out->directory());
        } else {
          spdlog::info("restore: pid {} runs from {}", out->pid(), out->directory());
        }
        return out;
      });
}

grpc::Status Service::Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                             v1::CancelResponse* response) {
  return serve("cancel", *request, response, [&] { return cancel(parts_, *request); });
}

grpc::Status Service::Release(grpc::ServerContext*, const v1::ReleaseRequest* request,
                              v1::ReleaseResponse* response) {
  return serve("release", *request, response, [&] { return release_job(parts_, *request); });
}

grpc::Status Service::Freeze(grpc::ServerContext*, const v1::FreezeRequest* request,
                             v1::FreezeResponse* response) {
  return serve("freeze", *request, response,
               [&] { return set_frozen(parts_, request->target(), true); });
}

grpc::Status Service::Unfreeze(grpc::ServerContext*, const v1::FreezeRequest* request,
                               v1::FreezeResponse* response) {
  return serve("unfreeze", *request, response,
               [&] { return set_frozen(parts_, request->target(), false); });
}

grpc::Status Service::List(grpc::ServerContext*, const v1::ListRequest* request,
                           v1::ListResponse* response) {
  return serve("list", *request, response, [&]() -> Result<v1::ListResponse> {
    v1::ListResponse out;
    for (const v1::Job& job : parts_.jobs.list()) *out.add_jobs() = job;
    return out;
  });
}

grpc::Status Service::Health(grpc::ServerContext*, const v1::HealthRequest* request,
                             v1::HealthResponse* response) {
  return serve("health", *request, response, [&]() -> Result<v1::HealthResponse> {
    v1::HealthResponse out;
    out.set_version(KYMO_VERSION);
    out.set_pid(getpid());
    out.set_uptime_ns(monotonic_ns() - started_ns_);
    const std::vector<runtime::CriuProgram>& crius = parts_.crius.programs();
    out.set_criu_path(crius.front().path);
    out.set_criu_version(crius.front().version.text());
    if (crius.size() > 1) {
      out.set_criu_fallback_path(crius.back().path);
      out.set_criu_fallback_version(crius.back().version.text());
    }
    out.set_state_directory(parts_.config.state_dir);
    out.set_http_address(http_.address());
    out.set_profiles_directory(parts_.config.profiles);
    *out.mutable_recorder() = recorder_status(parts_.recorder);
    for (std::string& trouble : troubles_of(parts_)) out.add_troubles(std::move(trouble));
    return out;
  });
}

// Gives the token to every caller: callers of the API may do more than users of the page.
grpc::Status Service::Web(grpc::ServerContext*, const v1::WebRequest* request,
                          v1::WebResponse* response) {
  return serve("web", *request, response, [&]() -> Result<v1::WebResponse> {
    v1::WebResponse out;
    out.set_url(http_.url("/"));
    out.set_url_once(http_.url_once("/"));
    return out;
  });
}

grpc::Status Service::Snapshot(grpc::ServerContext*, const v1::SnapshotRequest* request,
                               v1::SnapshotResponse* response) {
  return serve("snapshot", *request, response, [&]() -> Result<v1::SnapshotResponse> {
    kymo::SnapshotRequest wanted;
    constexpr std::uint64_t kMax = 24 * 3600 * kNanosPerSecond;
    wanted.before = std::chrono::nanoseconds(std::min(request->before_ns(), kMax));
    wanted.after = std::chrono::nanoseconds(std::min(request->after_ns(), kMax));
    if (!request->directory().empty()) {
      Result<std::string> directory =
          allowed_path(parts_.config, "snapshot into", request->directory());
      if (!directory) return directory.error();
      const auto free = refuse_own_files(parts_.config, "snapshot into", *directory + "/new");
      if (!free) return free.error();
      if (const auto own = own_place("snapshot into", *directory + "/new"); !own)
        return own.error();
      wanted.directory = std::move(directory).value();
    }
    const Result<TakenSnapshot> taken = parts_.recorder.snapshot(wanted, true);
    if (!taken) return taken.error();
    spdlog::info("snapshot: {}", taken->path);
    v1::SnapshotResponse out;
    out.set_recording(taken->path);
    out.set_before_ns(static_cast<std::uint64_t>(taken->before.count()));
    out.set_note(taken->note);
    return out;
  });
}

grpc::Status Service::ControlRecorder(grpc::ServerContext*,
                                      const v1::ControlRecorderRequest* request,
                                      v1::Recorder* response) {
  return serve("recorder", *request, response,
               [&] { return control_recorder(parts_, *request, "kymo"); });
}

// Watch does not use serve(), because drain() must not wait for watchers.
grpc::Status Service::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                            grpc::ServerWriter<v1::Progress>* writer) {
  try {
    const Result<void> valid = check_texts("watch", *request);
    if (!valid) return status_of(valid.error());
    const Result<void> done = watch(parts_.progress, *request,
                                    {[&](v1::Progress progress) {
                                       make_valid_utf8(progress);
                                       return writer->Write(progress);
                                     },
                                     [&] { return context->IsCancelled(); }});
    if (done) return grpc::Status::OK;
    return status_of(done.error());
  } catch (const std::exception& error) {  // no exception may reach gRPC
    return {grpc::StatusCode::INTERNAL, std::string("watch: ") + error.what()};
  }
}

grpc::Status Service::Checkpoints(grpc::ServerContext*, const v1::CheckpointsRequest* request,
                                  v1::CheckpointsResponse* response) {
  return serve("checkpoints", *request, response,
               [&] { return list_checkpoints(parts_, *request); });
}

grpc::Status Service::History(grpc::ServerContext*, const v1::HistoryRequest* request,
                              v1::HistoryResponse* response) {
  return serve("history", *request, response, [&] { return history_of(parts_, *request); });
}

grpc::Status Service::Inspect(grpc::ServerContext*, const v1::InspectRequest* request,
                              v1::InspectResponse* response) {
  return serve("inspect", *request, response, [&] { return inspect(parts_, *request); });
}

grpc::Status Service::ReadCheckpoint(grpc::ServerContext*, const v1::ReadCheckpointRequest* request,
                                     v1::ReadCheckpointResponse* response) {
  return serve("read checkpoint", *request, response,
               [&] { return read_checkpoint(parts_, *request); });
}

grpc::Status Service::ReadOutput(grpc::ServerContext*, const v1::ReadOutputRequest* request,
                                 v1::ReadOutputResponse* response) {
  return serve("read output", *request, response, [&] { return read_output(parts_, *request); });
}

grpc::Status Service::Kill(grpc::ServerContext*, const v1::KillRequest* request,
                           v1::KillResponse* response) {
  return serve("kill", *request, response, [&] { return kill_job(parts_, *request); });
}

grpc::Status Service::Delete(grpc::ServerContext*, const v1::DeleteRequest* request,
                             v1::DeleteResponse* response) {
  return serve("delete", *request, response, [&] { return delete_target(parts_, *request); });
}

grpc::Status Service::Metrics(grpc::ServerContext*, const v1::MetricsRequest* request,
                              v1::MetricsResponse* response) {
  return serve("metrics", *request, response,
               [&] { return read_metrics(parts_.metrics.registry()); });
}

}  // namespace kymo::daemon
