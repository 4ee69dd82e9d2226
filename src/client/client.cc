#include "client/client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file.h"

namespace kymo::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswersWithin{5};

Error not_kymod(const std::string& socket, const std::string& why) {
  return Error{Code::unavailable, "talk to kymod at " + socket + ": " + why +
                                      ": the socket belongs to another program, or kymod hangs; "
                                      "name kymod's socket with --socket"};
}

Error closed(const std::string& socket) {
  return Error{
      Code::unavailable,
      "talk to kymod at " + socket +
          ": the connection was closed: kymod stopped, or refused this user; see kymod's log"};
}

// A CRIU that writes images goes on without kymod.
Error outcome_unknown(const std::string& socket, const std::string& kind) {
  return Error{Code::unavailable,
               "talk to kymod at " + socket + ": the connection was closed during the " + kind +
                   ", because kymod stopped, or refused this user: if it was stopped, the " + kind +
                   " may still go on and end well: start kymod again, then see kymo ps" +
                   (kind == "dump" ? " and kymo checkpoints" : "")};
}

Error cannot_connect(const std::string& socket, int cause) {
  const std::string what = "connect to kymod at " + socket;
  switch (cause) {
    case ENOENT:
      return Error{Code::unavailable,
                   what + ": no such socket: start kymod, or name its socket with --socket", cause};
    case ECONNREFUSED:
      return Error{Code::unavailable, what + ": no program listens on it: start kymod", cause};
    case EACCES:
      return Error{Code::permission_denied,
                   what +
                       ": permission denied: only root, the user of kymod and the group "
                       "--socket-group may connect",
                   cause};
    default:
      return system_error(what, cause);
  }
}

// If the owner of the socket accepts no connections, its queue fills up, and connect(2) fails with
// EAGAIN.
Result<void> connect_until(int fd, const std::string& socket, const sockaddr_un& address,
                           Clock::time_point until) {
  constexpr std::chrono::milliseconds kTryEvery{20};
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  while (::connect(fd, generic, sizeof(address)) != 0) {
    if (errno != EAGAIN && errno != EINTR) return cannot_connect(socket, errno);
    if (Clock::now() > until) return not_kymod(socket, "no connection is accepted");
    std::this_thread::sleep_for(kTryEvery);
  }
  return {};
}

// An HTTP/2 server sends its settings first, without a request (RFC 9113, 3.4). This waits for them
// with a timeout, because gRPC would wait forever, and leaves them unread for gRPC.
Result<void> wait_for_greeting(int fd, const std::string& socket, Clock::time_point until) {
  constexpr std::size_t kFrameHeader = 9;
  constexpr std::size_t kTypeAt = 3;
  constexpr char kSettings = 4;
  std::array<char, kFrameHeader> header{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd readable{fd, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return not_kymod(socket, "nothing is sent");
    const ssize_t got = recv(fd, header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(header.size())) break;
    if (got == 0) return closed(socket);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return cannot_connect(socket, errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the rest is on its way
    if (Clock::now() > until) return not_kymod(socket, "the answer is too short");
  }
  if (header[kTypeAt] == kSettings) return {};
  return not_kymod(socket, "the answer is not gRPC");
}

// Reads a binary trailer. Returns an empty message if it is missing or invalid.
template <class Message>
Message trailer_of(const grpc::ClientContext& context, const char* name) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto trailer = trailers.find(name);
  Message message;
  if (trailer == trailers.end() ||
      !message.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size()))) {
    return {};
  }
  return message;
}

Client::Timing timing_of(const grpc::ClientContext& context) {
  const auto tree = trailer_of<v1::TimingTree>(context, "profiling-bin");
  Client::Timing timing;
  auto& scopes = timing.scopes;
  for (const v1::TimedScope& scope : tree.scopes()) {
    if (!scopes.empty() && scope.parent() >= scopes.size()) return {};
    const std::size_t parent = scopes.empty() ? ScopeRecord::kNoParent : scope.parent();
    scopes.push_back({parent, scope.name(), scope.category(), scope.error(), scope.start_ns(),
                      scope.duration_ns(), scope.bytes(), scope.parallel(), scope.redundant(),
                      scope.bytes_redundant(), scope.unfinished()});
  }
  if (!scopes.empty()) scopes.front().left_out = tree.scopes_left_out();
  return timing;
}

}  // namespace

Result<Client> Client::connect(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) {
    return Error{Code::invalid_argument,
                 "--socket " + socket + ": the path is empty or too long for a unix socket"};
  }
  socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return system_error("make a socket", errno);
  const auto until = Clock::now() + kAnswersWithin;
  if (Result<void> ok = connect_until(fd.get(), socket, address, until); !ok) return ok.error();
  if (Result<void> ok = wait_for_greeting(fd.get(), socket, until); !ok) return ok.error();
  // gRPC uses this connection, so every failure to connect has been reported precisely above.
  auto channel = grpc::CreateInsecureChannelFromFd("kymod", fd.release());
  return Client(socket, v1::Kymo::NewStub(channel));
}

template <class Response, class Call>
Result<Response> Client::call(Call&& one, Timing* timing, v1::Failure* failure, const char* kind) {
  grpc::ClientContext context;
  Response response;
  const grpc::Status status = one(&context, &response);
  if (timing != nullptr) *timing = timing_of(context);
  if (failure != nullptr) *failure = trailer_of<v1::Failure>(context, "failure-bin");
  if (status.ok()) return response;
  return error_of(status, kind);
}

Error Client::error_of(const grpc::Status& status, const char* kind) const {
  // The daemon's own errors have details. Without details, gRPC reports a lost connection, or cancels
  // a call that comes while the daemon stops.
  const bool ended = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                     status.error_code() == grpc::StatusCode::CANCELLED;
  if (ended && status.error_details().empty()) {
    return kind == nullptr ? closed(socket_) : outcome_unknown(socket_, kind);
  }
  // gRPC gives no reason if it could not make the message.
  const std::string& why = status.error_message();
  return Error{static_cast<Code>(status.error_code()),
               why.empty() ? "the request could not be sent: a name, path or argument in it is "
                             "probably not UTF-8"
                           : why};
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

Result<v1::DumpResponse> Client::dump(const v1::DumpRequest& request, Timing* timing,
                                      v1::Failure* failure) {
  return call<v1::DumpResponse>(
      [&](auto* context, auto* response) { return stub_->Dump(context, request, response); },
      timing, failure, "dump");
}

Result<v1::RestoreResponse> Client::restore(const v1::RestoreRequest& request, Timing* timing,
                                            v1::Failure* failure) {
  return call<v1::RestoreResponse>(
      [&](auto* context, auto* response) { return stub_->Restore(context, request, response); },
      timing, failure, "restore");
}

Result<v1::CancelResponse> Client::cancel(const std::string& target) {
  v1::CancelRequest request;
  request.set_target(target);
  return call<v1::CancelResponse>(
      [&](auto* context, auto* response) { return stub_->Cancel(context, request, response); });
}

Result<v1::ReleaseResponse> Client::release(const std::string& job) {
  v1::ReleaseRequest request;
  request.set_job(job);
  return call<v1::ReleaseResponse>(
      [&](auto* context, auto* response) { return stub_->Release(context, request, response); });
}

Result<v1::CheckResponse> Client::check(const v1::CheckRequest& request) {
  return call<v1::CheckResponse>(
      [&](auto* context, auto* response) { return stub_->Check(context, request, response); });
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

Result<v1::HealthResponse> Client::health() {
  return call<v1::HealthResponse>(
      [&](auto* context, auto* response) { return stub_->Health(context, {}, response); });
}

Result<void> Client::watch(const v1::WatchRequest& request,
                           const std::function<bool(const v1::Progress&)>& each,
                           grpc::ClientContext& call) {
  const auto reader = stub_->Watch(&call, request);
  v1::Progress progress;
  bool enough = false;
  while (reader->Read(&progress)) {
    if (each(progress)) continue;
    enough = true;
    call.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  if (status.ok() || enough) return {};
  return error_of(status, nullptr);
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

Result<v1::ReadCheckpointResponse> Client::read_checkpoint(
    const v1::ReadCheckpointRequest& request) {
  return call<v1::ReadCheckpointResponse>([&](auto* context, auto* response) {
    return stub_->ReadCheckpoint(context, request, response);
  });
}

Result<v1::ReadOutputResponse> Client::read_output(const v1::ReadOutputRequest& request) {
  return call<v1::ReadOutputResponse>(
      [&](auto* context, auto* response) { return stub_->ReadOutput(context, request, response); });
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

void end_threads() {
  grpc_init();  // so that the next call is the last one, and waits
  grpc_shutdown_blocking();
}

}  // namespace kymo::client
