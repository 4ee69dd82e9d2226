#include "runtimes/docker/docker_server.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/beneath.h"
#include "probe/process.h"
#include "runtime/server.h"

namespace kymo::runtime {
namespace {

constexpr std::string_view kDockerd = "dockerd";
constexpr char kUsualContainerd[] = "/run/containerd/containerd.sock";

Result<probe::Process> dockerd_of(const std::string& socket) {
  const Result<pid_t> server = server_of(socket);
  if (!server) return server.error();
  Result<probe::Process> found = probe::read_process(*server);
  if (found && is_of_root(*found, kDockerd)) return found;
  // systemd has made the socket (docker.socket).
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    found = probe::read_process(pid);
    if (found && found->name == kDockerd && is_of_root(*found, kDockerd)) return found;
  }
  return Error{
      Code::failed_precondition,
      "kymod sees no dockerd of root, so it cannot find out which criu Docker uses: start kymod in "
      "the pid namespace of Docker"};
}

// The socket of the containerd that dockerd did not start itself.
std::string containerd_socket(const probe::Process& dockerd) {
  constexpr std::string_view kFlag = "--containerd";
  for (std::size_t i = 0; i < dockerd.command.size(); ++i) {
    const std::string_view word = dockerd.command[i];
    if (word == kFlag && i + 1 < dockerd.command.size()) return dockerd.command[i + 1];
    if (word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('=')) {
      return std::string(word.substr(kFlag.size() + 1));
    }
  }
  return kUsualContainerd;
}

// Returns the containerd of the dockerd that serves the socket.
Result<pid_t> containerd_of(const std::string& docker_socket) {
  const Result<probe::Process> dockerd = dockerd_of(docker_socket);
  if (!dockerd) return dockerd.error();
  const Result<std::vector<pid_t>> children = probe::children_of(dockerd->pid);
  if (!children) return children.error();
  for (const pid_t child : *children) {
    const Result<probe::Process> seen = probe::read_process(child);
    if (seen && is_of_root(*seen, "containerd")) return child;
  }
  const std::string socket = containerd_socket(*dockerd);
  const Result<pid_t> server = server_of(socket);
  if (server) return *server;
  return Error{Code::failed_precondition,
               "the containerd of Docker is not found, so it cannot be "
               "seen which criu it uses: " +
                   server.error().message};
}

// Where containerd makes the copies: the first of these folders that it is told.
std::string temporary_folder(pid_t containerd) {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const Result<std::string> folder = variable_of(containerd, name);
    if (folder && !folder->empty()) return *folder;
  }
  return "/tmp";
}

}  // namespace

Result<std::string> path_of_dockers_containerd(const DockerClient& client) {
  // First make sure that Docker answers: its errors say what to do.
  if (const Result<bool> answers = client.experimental(); !answers) return answers.error();
  const Result<pid_t> containerd = containerd_of(client.socket());
  return containerd ? path_of(*containerd) : containerd.error();
}

void remove_copies(const DockerClient& client, const std::string& images_dir) {
  constexpr std::string_view kCopy = "ctrd-checkpoint";
  const std::string inventory = "inventory.img";  // no two dumps have the same
  const Result<pid_t> containerd = containerd_of(client.socket());
  const Result<std::string> ours = read_beneath(images_dir, inventory);
  if (!containerd || !ours) return;
  const std::string folder = temporary_folder(*containerd);
  std::vector<std::filesystem::path> copies;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    // Anybody may make a folder there.
    struct stat info {};
    const std::string path = entry->path();
    if (!entry->path().filename().string().starts_with(kCopy) ||
        ::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != 0) {
      continue;
    }
    const Result<std::string> theirs = read_beneath(path, inventory);
    if (theirs && *theirs == *ours) copies.push_back(entry->path());
  }
  for (const std::filesystem::path& copy : copies) std::filesystem::remove_all(copy, error);
}

}  // namespace kymo::runtime
