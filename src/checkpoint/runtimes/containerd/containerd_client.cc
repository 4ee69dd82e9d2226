#include "checkpoint/runtimes/containerd/containerd_client.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "checkpoint/runtimes/containerd/api/containers.grpc.pb.h"
#include "checkpoint/runtimes/containerd/api/runc_options.pb.h"
#include "checkpoint/runtimes/containerd/api/snapshots.grpc.pb.h"
#include "checkpoint/runtimes/containerd/api/tasks.grpc.pb.h"
#include "checkpoint/runtimes/shared/run_call.h"
#include "checkpoint/runtimes/shared/server.h"

namespace kymo::runtime {
namespace {

namespace containers = containerd::services::containers::v1;
namespace snapshots = containerd::services::snapshots::v1;
namespace tasks = containerd::services::tasks::v1;
using std::chrono::milliseconds;

std::string variable_or(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string no_server(const std::string& address) {
  return "no program listens on " + address +
         ": start containerd, or set CONTAINERD_ADDRESS to its socket when you start kymod";
}

Error error_of(const grpc::Status& status, const std::string& address) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      return Error{Code::not_found, status.error_message()};
    case grpc::StatusCode::UNAVAILABLE:
      return Error{Code::unavailable, no_server(address)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error{Code::deadline_exceeded, "containerd does not answer"};
    default:
      return Error{Code::failed_precondition, status.error_message()};
  }
}

bool is_identifier(const std::string& text) {
  constexpr std::size_t kMaxLength = 76;
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLength && text.front() != '-' && text.front() != '.' &&
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

// The input, output and error of a restored task. By these names its shim gives it pipes, which runc puts in the place of
// those that it had at its dump. Without names the shim would give it its own /dev/null, which is outside of the container,
// and CRIU dumps no open file from outside. The shim discards what comes out, and holds the input open, where nothing
// comes in.
//
// Ownership: the FIFO in `folder` is removed at the end. The shim opens it when the task starts. If the file system has no
//            FIFOs, the input is at its end.
class RestoredPipes {
 public:
  explicit RestoredPipes(const std::string& folder) : fifo_(folder + "/input") {
    ::unlink(fifo_.c_str());  // of a kymod that was killed
    made_ = ::mkfifo(fifo_.c_str(), S_IRUSR | S_IWUSR) == 0;
  }
  ~RestoredPipes() {
    if (made_) ::unlink(fifo_.c_str());
  }
  RestoredPipes(const RestoredPipes&) = delete;
  RestoredPipes& operator=(const RestoredPipes&) = delete;

  void give(tasks::CreateTaskRequest& request) const {
    request.set_stdin(made_ ? fifo_ : "/dev/null");
    request.set_stdout("file:///dev/null");
    request.set_stderr("file:///dev/null");
  }

 private:
  const std::string fifo_;
  bool made_ = false;
};

// Makes a call that takes as long as CRIU does.
Result<CommandOutcome> run_grpc_call(
    const Command& limits, const std::string& address,
    const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  grpc::ClientContext context;
  const auto run = [&]() -> Result<void> {
    const grpc::Status status = call(context);
    return status.ok() ? Result<void>() : error_of(status, address);
  };
  return run_call(limits, run, [&] { context.TryCancel(); });
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
  const Result<pid_t> server = server_of(address_);
  if (server) return path_of(*server);
  return server.error().code == Code::unavailable
             ? Error{Code::unavailable, no_server(address_), server.error().errno_value}
             : server.error();
}

Result<std::string> ContainerdClient::spec_of(const ContainerdName& name) const {
  containers::GetContainerRequest request;
  request.set_id(name.id);
  containers::GetContainerResponse response;
  Result<void> got = stubs().ask(address_, name, *stubs().containers,
                                 &containers::Containers::Stub::Get, request, response);
  if (!got) return got.error();
  return response.container().spec().value();
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

Result<void> ContainerdClient::delete_task(const ContainerdName& name,
                                           milliseconds patience) const {
  tasks::DeleteTaskRequest request;
  request.set_container_id(name.id);
  tasks::DeleteResponse response;
  return stubs().ask(address_, name, *stubs().tasks, &tasks::Tasks::Stub::Delete, request, response,
                     patience);
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
  return run_grpc_call(limits, address_, [&](grpc::ClientContext& context) {
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
  const RestoredPipes pipes(work_dir);
  pipes.give(request);
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
  return run_grpc_call(limits, address_, [&](grpc::ClientContext& context) {
    address_to(context, name);
    tasks::StartResponse response;
    return stubs().tasks->Start(&context, start, &response);
  });
}

}  // namespace kymo::runtime
