#include "daemon/serve/unix_listener.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/lock.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return static_cast<const sockaddr*>(static_cast<const void*>(&address));
}

// Makes `path` free for a new socket: removes a stale socket. Anything else at `path` is an error.
Result<void> remove_stale_socket(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return system_error("look at the socket " + path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Error{
        Code::already_exists,
        "the socket " + path +
            ": this file is not a socket: move it away, or name another socket with --socket"};
  }
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  if (connect(probe.get(), generic(address), sizeof(address)) == 0) {
    return Error{Code::already_exists,
                 "the socket " + path +
                     " is already served: stop the other kymod, or name another "
                     "socket with --socket"};
  }
  if (errno != ECONNREFUSED)
    return system_error("check whether the socket " + path + " is served", errno);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return system_error("remove the stale socket " + path, errno);
  }
  spdlog::info("replaced the stale socket {}", path);
  return {};
}

// Binds the socket and sets the mode of its file. After an error the file is removed.
Result<void> bind_with_mode(int fd, const std::string& path, std::optional<gid_t> group) {
  const sockaddr_un address = address_of(path);
  const mode_t before = umask(0177);
  const int bound = ::bind(fd, generic(address), sizeof(address));
  const int bind_error = errno;
  umask(before);
  if (bound != 0) return system_error("bind the socket " + path, bind_error);
  if (!group) return {};
  if (chown(path.c_str(), static_cast<uid_t>(-1), *group) == 0 && chmod(path.c_str(), 0660) == 0) {
    return {};
  }
  const Error error = system_error("give the socket " + path + " to its group", errno);
  unlink(path.c_str());
  return error;
}

bool is_root(uid_t uid) {
  return uid == 0 || uid == geteuid();
}

std::vector<gid_t> groups_of_peer(int fd) {
  std::array<gid_t, 256> groups{};
  socklen_t size = sizeof(groups);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return {};
  return {groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(size / sizeof(gid_t))};
}

}  // namespace

UnixListener::UnixListener(std::string path, FileDescriptor socket, std::optional<gid_t> group)
    : path_(std::move(path)),
      socket_(std::move(socket)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      group_(group) {
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
  }
}

UnixListener::~UnixListener() {
  stop();
}

Result<std::unique_ptr<UnixListener>> UnixListener::bind(std::string path,
                                                         const std::string& group) {
  std::optional<gid_t> gid;
  if (!group.empty()) {
    const struct group* entry = getgrnam(group.c_str());
    if (entry == nullptr) return Error{Code::not_found, "the group " + group + " does not exist"};
    gid = entry->gr_gid;
  }
  const fs::path folder = fs::path(path).parent_path();
  make_folders(folder);
  // Two daemons that start at once must not remove each other's socket. So they take this lock.
  const FileDescriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return system_error("open the socket's folder " + folder.string(), errno);
  // Any user may open the folder and hold its lock. So kymod starts without the lock after a while.
  static_cast<void>(lock_within(lock.get(), kLockPatience));
  if (Result<void> clear = remove_stale_socket(path); !clear) return clear.error();

  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return system_error("make the socket " + path, errno);
  if (Result<void> bound = bind_with_mode(fd.get(), path, gid); !bound) return bound.error();
  if (listen(fd.get(), SOMAXCONN) != 0) {
    const Error failed = system_error("listen on the socket " + path, errno);
    unlink(path.c_str());
    return failed;
  }
  return std::unique_ptr<UnixListener>(new UnixListener(std::move(path), std::move(fd), gid));
}

void UnixListener::serve(Handler handler) {
  handler_ = std::move(handler);
  thread_ = std::thread([this] { accept_loop(); });
}

void UnixListener::stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  if (!socket_.valid()) return;
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  socket_.reset();
}

void UnixListener::accept_loop() {
  std::array<pollfd, 2> waits{pollfd{socket_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      spdlog::error("cannot wait for callers on {}: {}", path_, std::strerror(errno));
      return;
    }
    if (waits[1].revents != 0) return;
    if (waits[0].revents != 0) accept_one();
  }
}

void UnixListener::accept_one() {
  FileDescriptor caller(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!caller.valid()) {
    if (errno == EMFILE || errno == ENFILE) {
      spdlog::error("cannot accept a caller on {}: {}", path_, std::strerror(errno));
      // The pending connection keeps poll() ready. Sleep, to not spin until a descriptor is free.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(caller.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    spdlog::warn("refused a caller on {}: no credentials: {}", path_, std::strerror(errno));
    return;
  }
  if (!allowed(caller.get(), peer.uid, peer.gid)) {
    spdlog::warn("refused a caller on {}: uid {} pid {}", path_, peer.uid, peer.pid);
    return;
  }
  spdlog::debug("caller on {}: uid {} pid {}", path_, peer.uid, peer.pid);
  handler_(caller.release(), is_root(peer.uid));
}

bool UnixListener::allowed(int fd, uid_t uid, gid_t gid) const {
  if (is_root(uid)) return true;
  if (!group_) return false;
  if (gid == *group_) return true;
  const std::vector<gid_t> groups = groups_of_peer(fd);
  return std::find(groups.begin(), groups.end(), *group_) != groups.end();
}

}  // namespace kymo::daemon
