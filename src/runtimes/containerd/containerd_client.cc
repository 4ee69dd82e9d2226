#include "runtimes/containerd/containerd_client.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "runtimes/containerd/api/containers.grpc.pb.h"
#include "runtimes/containerd/api/runc_options.pb.h"
#include "runtimes/containerd/api/snapshots.grpc.pb.h"
#include "runtimes/containerd/api/tasks.grpc.pb.h"

namespace kymo::runtime {
namespace {

namespace containers = containerd::services::containers::v1;
namespace snapshots = containerd::services::snapshots::v1;
namespace tasks = containerd::services::tasks::v1;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kEndsWithin{15'000};  // time for a call to end after its CRIU was ended
constexpr milliseconds kEndedLookEvery{50};

std::string variable_or(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string nobody_serves(const std::string& address) {
  return "nobody serves " + address +
         ": start containerd, or name its socket in CONTAINERD_ADDRESS when kymod is started";
}

Error error_of(const grpc::Status& status, const std::string& address) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      return Error{Code::not_found, status.error_message()};
    case grpc::StatusCode::UNAVAILABLE:
      return Error{Code::unavailable, nobody_serves(address)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error{Code::deadline_exceeded, "containerd does not answer"};
    default:
      return Error{Code::failed_precondition, status.error_message()};
  }
}

bool is_identifier(const std::string& text) {
  constexpr std::size_t kLongest = 76;
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '-' && text.front() != '.' &&
         text.front() != '_' && std::all_of(text.begin(), text.end(), is_plain);
}

void address_to(grpc::ClientContext& context, const ContainerdName& name) {
  context.AddMetadata("containerd-namespace", name.space);
}

// Packs a message as containerd's typeurl does. The type URL is only the name of the type.
template <class Message>
void pack(const Message& message, google::protobuf::Any& any) {
  any.set_type_url(std::string(Message::descriptor()->full_name()));
  any.set_value(message.SerializeAsString());
}

using Status = std::future<grpc::Status>;

bool has_ended(const Status& status, milliseconds within) {
  return status.wait_for(within) == std::future_status::ready;
}

// Waits until the call ends, which makes `ended` readable. Returns false if the timeout or a
// cancellation comes first.
bool wait_for(const Status& status, const FileDescriptor& ended, const Command& limits) {
  const bool bounded = limits.timeout.count() != 0;
  const auto until = steady_clock::now() + limits.timeout;
  while (!has_ended(status, milliseconds(0))) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    if (is_asked(limits.cancel) || (bounded && left.count() <= 0)) {
      return false;
    }
    pollfd fds[] = {{ended.get(), POLLIN, 0}, {fd_of(limits.cancel), POLLIN, 0}};
    constexpr milliseconds::rep kLongestWait{1000};
    const auto wait = bounded ? std::min(left.count() + 1, kLongestWait) : kLongestWait;
    ::poll(fds, 2, static_cast<int>(wait));
  }
  return true;
}

// Makes a call that takes as long as CRIU does, on a new thread.
Result<CommandOutcome> run_call(const Command& limits, const std::string& address,
                                const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  grpc::ClientContext context;
  const FileDescriptor ended(::eventfd(0, EFD_CLOEXEC));
  const std::uint64_t began_ns = monotonic_ns();
  Status status;
  try {
    status = std::async(std::launch::async, [&] {
      grpc::Status result = call(context);
      static_cast<void>(::eventfd_write(ended.get(), 1));
      return result;
    });
  } catch (const std::system_error& failure) {
    return kymo::system_error("start a thread", failure.code().value());
  }
  const bool in_time = wait_for(status, ended, limits);
  // Call time_over() again and again, because CRIU may begin only after the first call.
  for (const auto until = steady_clock::now() + kEndsWithin;
       !in_time && !has_ended(status, kEndedLookEvery) && steady_clock::now() < until;) {
    if (limits.time_over) limits.time_over(kNoSession);
  }
  if (!in_time) context.TryCancel();
  const grpc::Status result = status.get();
  CommandOutcome outcome;
  outcome.life_ns = monotonic_ns() - began_ns;
  if (!in_time && !result.ok() && is_asked(limits.cancel)) {
    return Error{Code::cancelled, "the request was cancelled"};
  }
  if (!in_time && !result.ok()) {
    return Error{
        Code::deadline_exceeded,
        "it took longer than " + std::to_string(limits.timeout.count()) + " ms and was ended"};
  }
  outcome.exit_status = result.ok() ? 0 : 1;
  outcome.ended = "failed";
  if (!result.ok()) outcome.errors = error_of(result, address).message;
  return outcome;
}

}  // namespace

struct ContainerdClient::Stubs {
  explicit Stubs(const std::string& address)
      : channel(grpc::CreateChannel("unix:" + address, grpc::InsecureChannelCredentials())),
        containers(containers::Containers::NewStub(channel)),
        snapshots(snapshots::Snapshots::NewStub(channel)),
        tasks(tasks::Tasks::NewStub(channel)) {}

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<containers::Containers::Stub> containers;
  std::unique_ptr<snapshots::Snapshots::Stub> snapshots;
  std::unique_ptr<tasks::Tasks::Stub> tasks;

  // Makes a call that containerd answers at once.
  template <class Stub, class Request, class Response>
  Result<void> ask(const std::string& address, const ContainerdName& name, Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, Response& response,
                   milliseconds patience = kAnswersWithin) const {
    grpc::ClientContext context;
    address_to(context, name);
    context.set_deadline(std::chrono::system_clock::now() + patience);
    const grpc::Status status = (stub.*method)(&context, request, &response);
    return status.ok() ? Result<void>() : error_of(status, address);
  }
};

Result<ContainerdName> containerd_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  const ContainerdName found =
      slash != std::string::npos
          ? ContainerdName{name.substr(0, slash), name.substr(slash + 1)}
          : ContainerdName{variable_or("CONTAINERD_NAMESPACE", "default"), name};
  if (is_identifier(found.space) && is_identifier(found.id)) return found;
  return Error{Code::invalid_argument,
               "container " + name +
                   ": a container of containerd is named ID or NAMESPACE/ID, each of at most 76 "
                   "characters of [A-Za-z0-9_.-], the first a letter or a digit"};
}

ContainerdClient::ContainerdClient()
    : address_(variable_or("CONTAINERD_ADDRESS", "/run/containerd/containerd.sock")) {}

const ContainerdClient::Stubs& ContainerdClient::stubs() const {
  std::call_once(made_, [this] { stubs_ = std::make_unique<Stubs>(address_); });
  return *stubs_;
}

ContainerdClient::~ContainerdClient() = default;

Result<std::string> ContainerdClient::server_path() const {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address_.size() >= sizeof name.sun_path) {
    return Error{Code::invalid_argument, address_ + " is too long for the name of a socket"};
  }
  std::copy(address_.begin(), address_.end(), std::begin(name.sun_path));
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ucred server{};
  socklen_t size = sizeof server;
  const auto* const generic = static_cast<const sockaddr*>(static_cast<const void*>(&name));
  if (!socket.valid() || ::connect(socket.get(), generic, sizeof name) != 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) {
    return Error{Code::unavailable, nobody_serves(address_), errno};
  }
  const Result<std::string> environment =
      read_file("/proc/" + std::to_string(server.pid) + "/environ");
  if (!environment) return environment.error();
  constexpr std::string_view kPath = "PATH=";
  for (std::size_t at = 0; at < environment->size();) {
    const std::string variable = environment->substr(at, environment->find('\0', at) - at);
    if (variable.starts_with(kPath)) return variable.substr(kPath.size());
    at += variable.size() + 1;
  }
  return Error{Code::failed_precondition, "containerd has no PATH in its environment"};
}

Result<void> ContainerdClient::check_container(const ContainerdName& name) const {
  containers::GetContainerRequest request;
  request.set_id(name.id);
  containers::GetContainerResponse response;
  return stubs().ask(address_, name, *stubs().containers, &containers::Containers::Stub::Get,
                     request, response);
}

Result<std::optional<ContainerdTask>> ContainerdClient::task(const ContainerdName& name,
                                                             milliseconds patience) const {
  tasks::GetRequest request;
  request.set_container_id(name.id);
  tasks::GetResponse response;
  Result<void> got = stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Get, request,
                                 response, patience);
  if (!got && got.error().code == Code::not_found) return std::optional<ContainerdTask>();
  if (!got) return got.error();
  ContainerdTask task;
  task.pid = static_cast<pid_t>(response.process().pid());
  switch (response.process().status()) {
    case containerd::v1::types::STOPPED:
      task.state = ContainerdTask::State::stopped;
      break;
    case containerd::v1::types::PAUSED:
    case containerd::v1::types::PAUSING:
      task.state = ContainerdTask::State::paused;
      break;
    default:
      task.state = ContainerdTask::State::runs;
  }
  return std::optional(task);
}

Result<void> ContainerdClient::delete_task(const ContainerdName& name) const {
  tasks::DeleteTaskRequest request;
  request.set_container_id(name.id);
  tasks::DeleteResponse response;
  return stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Delete, request,
                     response);
}

Result<void> ContainerdClient::pause(const ContainerdName& name) const {
  tasks::PauseTaskRequest request;
  request.set_container_id(name.id);
  google::protobuf::Empty response;
  return stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Pause, request, response);
}

Result<void> ContainerdClient::resume(const ContainerdName& name) const {
  tasks::ResumeTaskRequest request;
  request.set_container_id(name.id);
  google::protobuf::Empty response;
  return stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Resume, request,
                     response);
}

Result<CommandOutcome> ContainerdClient::checkpoint(const ContainerdName& name,
                                                    const ContainerdCheckpoint& how,
                                                    const Command& limits) const {
  containerd::runc::v1::CheckpointOptions options;
  options.set_exit(!how.leave_running);
  options.set_open_tcp(how.tcp_established);
  options.set_external_unix_sockets(how.external_unix_sockets);
  options.set_terminal(how.shell_job);
  options.set_file_locks(how.file_locks);
  options.set_image_path(how.images_dir);
  options.set_work_path(how.work_dir);
  tasks::CheckpointTaskRequest request;
  request.set_container_id(name.id);
  pack(options, *request.mutable_options());
  return run_call(limits, address_, [&](grpc::ClientContext& context) {
    address_to(context, name);
    tasks::CheckpointTaskResponse response;
    return stubs().tasks->Checkpoint(&context, request, &response);
  });
}

Result<CommandOutcome> ContainerdClient::restore(const ContainerdName& name,
                                                 const std::string& images_dir,
                                                 const std::string& work_dir,
                                                 const Command& limits) const {
  containers::GetContainerRequest asked;
  asked.set_id(name.id);
  containers::GetContainerResponse found;
  Result<void> got = stubs().ask(address_, name, *stubs().containers,
                                 &containers::Containers::Stub::Get, asked, found);
  if (!got) return got.error();
  const containers::Container& container = found.container();
  // The options of the task replace those of the container, so begin with a copy of the latter.
  containerd::runc::v1::Options options;
  static_cast<void>(options.ParseFromString(container.runtime().options().value()));
  options.set_criu_image_path(images_dir);
  options.set_criu_work_path(work_dir);
  tasks::CreateTaskRequest request;
  request.set_container_id(name.id);
  pack(options, *request.mutable_options());
  if (!container.snapshot_key().empty()) {
    snapshots::MountsRequest of;
    of.set_snapshotter(container.snapshotter());
    of.set_key(container.snapshot_key());
    snapshots::MountsResponse mounts;
    got = stubs().ask(address_, name, *stubs().snapshots, &snapshots::Snapshots::Stub::Mounts, of,
                      mounts);
    if (!got) return got.error();
    *request.mutable_rootfs() = mounts.mounts();
  }
  tasks::CreateTaskResponse created;
  got = stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Create, request, created);
  if (!got) return got.error();
  tasks::StartRequest start;
  start.set_container_id(name.id);
  return run_call(limits, address_, [&](grpc::ClientContext& context) {
    address_to(context, name);
    tasks::StartResponse response;
    return stubs().tasks->Start(&context, start, &response);
  });
}

}  // namespace kymo::runtime
