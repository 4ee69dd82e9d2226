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
// Threads: any. Cost: connect() waits until kymod greets, five seconds at most. Errors: connect()
// says which daemon was not there and what to do; a call's error is the daemon's own line, or that
// the daemon went away while the call ran.
class Client {
 public:
  static Result<Client> connect(const std::string& socket);

  // What the daemon spent its time on, of failed calls as well; no scopes where it does not say.
  struct Timing {
    std::vector<ScopeRecord> scopes;
    std::uint64_t left_out = 0;  // scopes that are not there
  };

  Result<v1::RunResponse> run(const v1::RunRequest& request, Timing* timing = nullptr);
  Result<v1::RunResponse> adopt(const v1::AdoptRequest& request);
  Result<v1::DumpResponse> dump(const v1::DumpRequest& request, Timing* timing = nullptr);
  Result<v1::RestoreResponse> restore(const v1::RestoreRequest& request, Timing* timing = nullptr);
  // Returns once what it ends has ended.
  Result<v1::CancelResponse> cancel(const std::string& target);
  Result<v1::ReleaseResponse> release(const std::string& job);
  // Unfreezes where `frozen` is false.
  Result<v1::FreezeResponse> freeze(const v1::FreezeRequest& request, bool frozen);
  Result<v1::ListResponse> list();
  Result<v1::HealthResponse> health();
  Result<v1::MetricsResponse> metrics();
  Result<v1::WebResponse> web();
  Result<v1::SnapshotResponse> snapshot(const v1::SnapshotRequest& request);
  Result<v1::Recorder> control_recorder(const v1::ControlRecorderRequest& request);
  // Gives each update to `each` until what is watched has ended, or `each` returns false, or
  // another thread cancels the call. Not an error: cancelled.
  Result<void> watch(const v1::WatchRequest& request,
                     const std::function<bool(const v1::Progress&)>& each,
                     grpc::ClientContext& call);
  Result<v1::CheckpointsResponse> checkpoints(const v1::CheckpointsRequest& request);
  Result<v1::HistoryResponse> history(const v1::HistoryRequest& request);
  Result<v1::InspectResponse> inspect(const std::string& target);
  Result<v1::KillResponse> kill(const v1::KillRequest& request);
  Result<v1::DeleteResponse> remove(const v1::DeleteRequest& request);

 private:
  Client(std::string socket, std::unique_ptr<v1::Kymo::Stub> stub)
      : socket_(std::move(socket)), stub_(std::move(stub)) {}

  template <class Response, class Call>
  Result<Response> call(Call&& one, Timing* timing = nullptr);

  [[nodiscard]] Error error_of(const grpc::Status& status) const;

  std::string socket_;
  std::unique_ptr<v1::Kymo::Stub> stub_;
};

}  // namespace kymo::client
