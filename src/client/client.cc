#include "client/client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace kymo::client {
namespace {

Error cannot_connect(const std::string& socket, int cause) {
  const std::string what = "connect to kymod at " + socket;
  switch (cause) {
    case ENOENT:
      return Error{Code::unavailable,
                   what + ": no such socket: start kymod, or name its socket with --socket", cause};
    case ECONNREFUSED:
      return Error{Code::unavailable, what + ": nobody serves it: start kymod", cause};
    case EACCES:
      return Error{Code::permission_denied,
                   what +
                       ": permission denied: only root, kymod's user and the group of its "
                       "--socket-group may",
                   cause};
    default:
      return system_error(what, cause);
  }
}

// The trailer `profiling-bin`; nothing where there is none, or none that makes sense.
Client::Timing timing_of(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto trailer = trailers.find("profiling-bin");
  v1::TimingTree tree;
  if (trailer == trailers.end() ||
      !tree.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size()))) {
    return {};
  }
  Client::Timing timing;
  timing.left_out = tree.scopes_left_out();
  auto& scopes = timing.scopes;
  for (const v1::TimedScope& scope : tree.scopes()) {
    if (!scopes.empty() && scope.parent() >= scopes.size()) return {};
    const std::size_t parent = scopes.empty() ? ScopeRecord::kNoParent : scope.parent();
    scopes.push_back({parent, scope.name(), scope.category(), scope.error(), scope.start_ns(),
                      scope.duration_ns(), scope.bytes(), scope.parallel(), scope.redundant(),
                      scope.bytes_redundant(), scope.unfinished()});
  }
  return timing;
}

}  // namespace

Result<Client> Client::connect(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) {
    return Error{Code::invalid_argument,
                 "--socket " + socket + ": not a path that a unix socket can have"};
  }
  socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("make a socket", errno);
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  if (::connect(fd, generic, sizeof(address)) != 0) {
    const int cause = errno;
    close(fd);
    return cannot_connect(socket, cause);
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  // This very connection carries the calls, so that what failed to connect was said precisely
  // above.
  auto channel = grpc::CreateInsecureChannelFromFd("kymod", fd);
  return Client(socket, v1::Kymo::NewStub(channel));
}

template <class Response, class Call>
Result<Response> Client::call(Call&& one, Timing* timing) {
  grpc::ClientContext context;
  Response response;
  const grpc::Status status = one(&context, &response);
  if (timing != nullptr) *timing = timing_of(context);
  if (status.ok()) return response;
  return error_of(status);
}

Error Client::error_of(const grpc::Status& status) const {
  // The daemon's own errors have details; what has none is gRPC's account of a lost connection.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && status.error_details().empty()) {
    return Error{Code::unavailable,
                 "talk to kymod at " + socket_ +
                     ": the connection was closed: it stopped, or refused this user; "
                     "its log says which"};
  }
  return Error{static_cast<Code>(status.error_code()), status.error_message()};
}

Result<v1::RunResponse> Client::run(const v1::RunRequest& request, Timing* timing) {
  return call<v1::RunResponse>(
      [&](auto* context, auto* response) { return stub_->Run(context, request, response); },
      timing);
}

Result<v1::RunResponse> Client::adopt(const v1::AdoptRequest& request) {
  return call<v1::RunResponse>(
      [&](auto* context, auto* response) { return stub_->Adopt(context, request, response); });
}

Result<v1::DumpResponse> Client::dump(const v1::DumpRequest& request, Timing* timing) {
  return call<v1::DumpResponse>(
      [&](auto* context, auto* response) { return stub_->Dump(context, request, response); },
      timing);
}

Result<v1::RestoreResponse> Client::restore(const v1::RestoreRequest& request, Timing* timing) {
  return call<v1::RestoreResponse>(
      [&](auto* context, auto* response) { return stub_->Restore(context, request, response); },
      timing);
}

Result<v1::FreezeResponse> Client::freeze(const v1::FreezeRequest& request, bool frozen) {
  return call<v1::FreezeResponse>([&](auto* context, auto* response) {
    return frozen ? stub_->Freeze(context, request, response)
                  : stub_->Unfreeze(context, request, response);
  });
}

Result<v1::ListResponse> Client::list() {
  return call<v1::ListResponse>(
      [&](auto* context, auto* response) { return stub_->List(context, {}, response); });
}

Result<v1::HealthResponse> Client::health() {
  return call<v1::HealthResponse>(
      [&](auto* context, auto* response) { return stub_->Health(context, {}, response); });
}

Result<v1::SnapshotResponse> Client::snapshot(const v1::SnapshotRequest& request) {
  return call<v1::SnapshotResponse>(
      [&](auto* context, auto* response) { return stub_->Snapshot(context, request, response); });
}

Result<v1::Recorder> Client::control_recorder(const v1::ControlRecorderRequest& request) {
  return call<v1::Recorder>([&](auto* context, auto* response) {
    return stub_->ControlRecorder(context, request, response);
  });
}

Result<v1::WebResponse> Client::web() {
  return call<v1::WebResponse>(
      [&](auto* context, auto* response) { return stub_->Web(context, {}, response); });
}

Result<void> Client::watch(const v1::WatchRequest& request,
                           const std::function<bool(const v1::Progress&)>& each,
                           grpc::ClientContext& call) {
  const auto reader = stub_->Watch(&call, request);
  v1::Progress progress;
  while (reader->Read(&progress)) {
    if (!each(progress)) call.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  if (status.ok() || status.error_code() == grpc::StatusCode::CANCELLED) return {};
  return error_of(status);
}

Result<v1::CheckpointsResponse> Client::checkpoints(const v1::CheckpointsRequest& request) {
  return call<v1::CheckpointsResponse>([&](auto* context, auto* response) {
    return stub_->Checkpoints(context, request, response);
  });
}

Result<v1::HistoryResponse> Client::history(const v1::HistoryRequest& request) {
  return call<v1::HistoryResponse>(
      [&](auto* context, auto* response) { return stub_->History(context, request, response); });
}

Result<v1::InspectResponse> Client::inspect(const std::string& target) {
  v1::InspectRequest request;
  request.set_target(target);
  return call<v1::InspectResponse>(
      [&](auto* context, auto* response) { return stub_->Inspect(context, request, response); });
}

Result<v1::KillResponse> Client::kill(const v1::KillRequest& request) {
  return call<v1::KillResponse>(
      [&](auto* context, auto* response) { return stub_->Kill(context, request, response); });
}

Result<v1::DeleteResponse> Client::remove(const v1::DeleteRequest& request) {
  return call<v1::DeleteResponse>(
      [&](auto* context, auto* response) { return stub_->Delete(context, request, response); });
}

Result<v1::MetricsResponse> Client::metrics() {
  return call<v1::MetricsResponse>(
      [&](auto* context, auto* response) { return stub_->Metrics(context, {}, response); });
}

}  // namespace kymo::client
