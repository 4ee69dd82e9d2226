#include "checkpoint/runtimes/shared/server.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/proc/container_keeper.h"
#include "checkpoint/criu/drive/client.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/runtimes/shared/command.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kVersionWithin{30'000};

}  // namespace

Result<pid_t> server_of(const std::string& socket) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (socket.size() >= sizeof name.sun_path) {
    return Error{Code::invalid_argument, socket + " is too long for the name of a socket"};
  }
  std::copy(socket.begin(), socket.end(), std::begin(name.sun_path));
  const FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ucred server{};
  socklen_t size = sizeof server;
  const auto* const generic = static_cast<const sockaddr*>(static_cast<const void*>(&name));
  if (!connection.valid() || ::connect(connection.get(), generic, sizeof name) != 0 ||
      ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) {
    Error error = system_error("connect to " + socket, errno);
    error.code = Code::unavailable;
    return error;
  }
  return server.pid;
}

Result<std::string> variable_of(pid_t process, const std::string& name) {
  const Result<std::string> environment =
      read_file("/proc/" + std::to_string(process) + "/environ");
  if (!environment) return environment.error();
  const std::string begin = name + "=";
  for (std::size_t at = 0; at < environment->size();) {
    const std::string variable = environment->substr(at, environment->find('\0', at) - at);
    if (variable.starts_with(begin)) return variable.substr(begin.size());
    at += variable.size() + 1;
  }
  return std::string();
}

Result<std::string> path_of(pid_t server) {
  Result<std::string> path = variable_of(server, "PATH");
  if (!path || !path->empty()) return path;
  return Error{Code::failed_precondition,
               "process " + std::to_string(server) + " has no PATH in its environment"};
}

Result<CriuProgram> criu_of_server(const std::string& server, const std::string& path) {
  CriuProgram program;
  program.path = on_path("criu", path);
  if (program.path.empty()) {
    return Error{Code::failed_precondition, server + " finds no criu: start " + server +
                                                " with the folder of one on its PATH (" + path +
                                                ")"};
  }
  program.folder = std::filesystem::path(program.path).parent_path();
  criu::ClientOptions options;
  options.path = program.path;
  options.timeout = kVersionWithin;
  const Result<criu::Version> version = criu::Client(std::move(options)).version();
  if (!version) return version.error();
  program.version = *version;
  return program;
}

bool is_of_root(const probe::Process& process, std::string_view program) {
  namespace fs = std::filesystem;
  if (process.uid != 0) return false;
  const fs::path of_process = "/proc/" + std::to_string(process.pid);
  std::error_code error;
  const fs::path file = fs::read_symlink(of_process / "exe", error);
  if (error || !file.filename().string().starts_with(program)) return false;
  const fs::path theirs = fs::read_symlink(of_process / "ns/pid", error);
  return !error && theirs == fs::read_symlink("/proc/self/ns/pid", error) && !error;
}

std::string folder_of_shim(pid_t shim, const char* below) {
  const Result<probe::Process> seen = probe::read_process(shim);
  if (!seen || !is_of_root(*seen, "containerd-shim")) return {};
  std::error_code error;
  const auto folder =
      std::filesystem::canonical("/proc/" + std::to_string(shim) + "/cwd/" + below, error);
  return error ? std::string() : folder.string();
}

std::string bundle_of_shim(pid_t process) {
  const Result<probe::Process> seen = probe::read_process(process);
  return seen ? folder_of_shim(seen->parent, "") : "";
}

ShimLink::ShimLink(const std::string& id, const std::string& link)
    : link_(link), thread_([id, link](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kLookEvery{4};
        probe::ContainerKeeper shims(id);
        for (; !stop.stop_requested(); std::this_thread::sleep_for(kLookEvery)) {
          for (const pid_t shim : shims.look()) {
            const std::string folder = folder_of_shim(shim, "work");
            std::error_code error;
            if (folder.empty()) continue;
            std::filesystem::create_directory_symlink(folder, link, error);
            return;
          }
        }
      }) {}

ShimLink::~ShimLink() {
  thread_.request_stop();
  thread_.join();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink(link_, error);
  if (error) return;
  std::filesystem::remove(link_, error);
  // containerd gives the folder a dot before it removes it, and fails if something is mounted there.
  const auto renamed = folder.parent_path() / ("." + folder.filename().string());
  criu::remove_leftover_mounts(folder);
  criu::remove_leftover_mounts(renamed);
  std::filesystem::remove(renamed, error);  // if it is empty now
}

}  // namespace kymo::runtime
