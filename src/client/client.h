#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.grpc.pb.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::client {

// A connection to kymod over its unix socket.
//
// Threads: any.
// Errors:  connect() says which daemon could not be reached and what to do. A call returns the
//          daemon's own error, or says that the daemon ended during the call.
// Cost:    connect() waits until kymod sends its HTTP/2 settings, at most five seconds.
class Client {
 public:
  static Result<Client> connect(const std::string& socket);

  // How the daemon spent its time on a call, also on a failed one. There are no scopes if the
  // daemon did not send any.
  struct Timing {
    std::vector<ScopeRecord> scopes;
  };

  Result<v1::RunResponse> run(const v1::RunRequest& request, Timing* timing = nullptr);
  Result<v1::RunResponse> adopt(const v1::AdoptRequest& request);
  // `failure`: why the call failed; its id is empty if it did not, or if the daemon did not say.
  Result<v1::DumpResponse> dump(const v1::DumpRequest& request, Timing* timing = nullptr,
                                v1::Failure* failure = nullptr);
  Result<v1::CheckResponse> check(const v1::CheckRequest& request);
  Result<v1::RestoreResponse> restore(const v1::RestoreRequest& request, Timing* timing = nullptr,
                                      v1::Failure* failure = nullptr);
  // Returns when the cancelled request has ended.
  Result<v1::CancelResponse> cancel(const std::string& target);
  Result<v1::ReleaseResponse> release(const std::string& job);
  // Freezes if `frozen` is true, and unfreezes otherwise.
  Result<v1::FreezeResponse> freeze(const v1::FreezeRequest& request, bool frozen);
  Result<v1::ListResponse> list();
  Result<v1::MetricsResponse> metrics();
  Result<v1::WebResponse> web();
  Result<v1::HealthResponse> health();
  Result<v1::SnapshotResponse> snapshot(const v1::SnapshotRequest& request);
  Result<v1::Recorder> control_recorder(const v1::ControlRecorderRequest& request);
  // Calls `each` with each update, until the request has ended, `each` returns false, or another
  // thread cancels the call.
  // Errors: unavailable: the daemon stops, or another thread has cancelled the call.
  Result<void> watch(const v1::WatchRequest& request,
                     const std::function<bool(const v1::Progress&)>& each,
                     grpc::ClientContext& call);
  Result<v1::CheckpointsResponse> checkpoints(const v1::CheckpointsRequest& request);
  Result<v1::HistoryResponse> history(const v1::HistoryRequest& request);
  Result<v1::InspectResponse> inspect(const std::string& target);
  Result<v1::ReadCheckpointResponse> read_checkpoint(const v1::ReadCheckpointRequest& request);
  Result<v1::ReadOutputResponse> read_output(const v1::ReadOutputRequest& request);
  Result<v1::KillResponse> kill(const v1::KillRequest& request);
  Result<v1::DeleteResponse> remove(const v1::DeleteRequest& request);

 private:
  Client(std::string socket, std::unique_ptr<v1::Kymo::Stub> stub)
      : socket_(std::move(socket)), stub_(std::move(stub)) {}

  // `kind`: "dump" or "restore", which may go on if the daemon ends; null: another call.
  template <class Response, class Call>
  Result<Response> call(Call&& one, Timing* timing = nullptr, v1::Failure* failure = nullptr,
                        const char* kind = nullptr);

  [[nodiscard]] Error error_of(const grpc::Status& status, const char* kind) const;

  std::string socket_;
  std::unique_ptr<v1::Kymo::Stub> stub_;
};

// Ends the threads of gRPC, which stay after the last Client is gone. Call it before fork(): a lock
// that such a thread holds would stay locked in the child.
//
// Threads: any, while this process has no Client.
// Cost:    a few milliseconds.
void end_threads();

}  // namespace kymo::client
