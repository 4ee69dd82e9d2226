#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "api/kymo/v1/kymo.grpc.pb.h"
#include "base/clock.h"
#include "base/http/server.h"
#include "daemon/request/parts.h"
#include "daemon/serve/otlp.h"

namespace kymo::daemon {

// Who may call a Service.
enum class Callers : std::uint8_t { root, group };

// The gRPC API of the daemon. It passes each request to the function that does it, and turns errors
// into gRPC statuses.
//
// Threads:   gRPC calls it on several threads at once. close() and drain() from one other thread.
// Ownership: refers to the parts, the exporter and the HTTP server.
class Service final : public v1::Kymo::Service {
 public:
  // `spans`: also gets the timing trees of requests; may be null.
  Service(const Parts& parts, OtlpExporter* spans, const http::Server& http, Callers callers)
      : parts_(parts), spans_(spans), http_(http), callers_(callers) {}

  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   v1::RunResponse* response) override;
  grpc::Status Adopt(grpc::ServerContext* context, const v1::AdoptRequest* request,
                     v1::RunResponse* response) override;
  grpc::Status Dump(grpc::ServerContext* context, const v1::DumpRequest* request,
                    v1::DumpResponse* response) override;
  grpc::Status Check(grpc::ServerContext* context, const v1::CheckRequest* request,
                     v1::CheckResponse* response) override;
  grpc::Status Restore(grpc::ServerContext* context, const v1::RestoreRequest* request,
                       v1::RestoreResponse* response) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                      v1::CancelResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status Freeze(grpc::ServerContext* context, const v1::FreezeRequest* request,
                      v1::FreezeResponse* response) override;
  grpc::Status Unfreeze(grpc::ServerContext* context, const v1::FreezeRequest* request,
                        v1::FreezeResponse* response) override;
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest* request,
                    v1::ListResponse* response) override;
  grpc::Status Health(grpc::ServerContext* context, const v1::HealthRequest* request,
                      v1::HealthResponse* response) override;
  grpc::Status Metrics(grpc::ServerContext* context, const v1::MetricsRequest* request,
                       v1::MetricsResponse* response) override;

  grpc::Status Snapshot(grpc::ServerContext* context, const v1::SnapshotRequest* request,
                        v1::SnapshotResponse* response) override;
  grpc::Status ControlRecorder(grpc::ServerContext* context,
                               const v1::ControlRecorderRequest* request,
                               v1::Recorder* response) override;
  grpc::Status Checkpoints(grpc::ServerContext* context, const v1::CheckpointsRequest* request,
                           v1::CheckpointsResponse* response) override;
  grpc::Status History(grpc::ServerContext* context, const v1::HistoryRequest* request,
                       v1::HistoryResponse* response) override;
  grpc::Status Inspect(grpc::ServerContext* context, const v1::InspectRequest* request,
                       v1::InspectResponse* response) override;
  grpc::Status ReadCheckpoint(grpc::ServerContext* context,
                              const v1::ReadCheckpointRequest* request,
                              v1::ReadCheckpointResponse* response) override;
  grpc::Status ReadOutput(grpc::ServerContext* context, const v1::ReadOutputRequest* request,
                          v1::ReadOutputResponse* response) override;
  grpc::Status Kill(grpc::ServerContext* context, const v1::KillRequest* request,
                    v1::KillResponse* response) override;
  grpc::Status Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                      v1::DeleteResponse* response) override;

  grpc::Status Web(grpc::ServerContext* context, const v1::WebRequest* request,
                   v1::WebResponse* response) override;

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::Progress>* writer) override;

  // From now on, refuses new requests.
  void close();
  // Waits for the requests that run. Returns false if some still run at that time.
  bool drain(std::chrono::steady_clock::time_point until);

 private:
  // Runs one request unless the daemon is stopping or the request is not valid (check_texts()).
  template <class Response, class Work>
  grpc::Status serve(const char* verb, const google::protobuf::Message& request, Response* response,
                     Work&& work);
  // Like serve(), with a timing tree from here to the reply. `work` gets the tree (null if timing
  // is off), and the caller gets it as a trailer.
  template <class Response, class Work>
  grpc::Status serve_timed(const char* verb, grpc::ServerContext* context,
                           const google::protobuf::Message& request, Response* response,
                           Work&& work);
  bool enter();
  void leave();

  const Parts parts_;
  OtlpExporter* const spans_;
  const http::Server& http_;
  const Callers callers_;
  const std::uint64_t started_ns_ = monotonic_ns();
  std::mutex mutex_;
  std::condition_variable left_;
  int running_ = 0;
  bool stopping_ = false;
};

}  // namespace kymo::daemon
