#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A unix socket that checks the credentials of each connection before it passes the connection to
// the handler. It accepts root, the daemon's own user and the members of the socket's group.
//
// Threads:   bind() before other threads start (it changes the umask for a moment); serve() starts
//            one thread, stop() joins it.
// Ownership: an accepted descriptor belongs to the handler. stop() removes the socket's file,
//            unless another file has taken its place.
// Errors:    bind(): the socket is already served, the file is no socket, no permission; one line
//            each. A refused caller is logged with uid and pid, and its connection is closed.
class UnixListener {
 public:
  // `root`: the caller is root or the daemon's own user, and not only a member of the group.
  using Handler = std::function<void(int fd, bool root)>;

  // Binds `path` with mode 0600, or with mode 0660 for `group` if one is named. Replaces a socket
  // that no process serves. The socket gets its mode before it listens, so that nobody can connect
  // earlier.
  static Result<std::unique_ptr<UnixListener>> bind(std::string path, const std::string& group);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  void serve(Handler handler);
  void stop();

 private:
  UnixListener(std::string path, FileDescriptor socket, std::optional<gid_t> group);
  void accept_loop();
  void accept_one();
  [[nodiscard]] bool allowed(int fd, uid_t uid, gid_t gid) const;

  const std::string path_;
  FileDescriptor socket_;
  FileDescriptor wake_;  // an eventfd; stop() writes to it to end the loop
  const std::optional<gid_t> group_;
  dev_t device_ = 0;  // device and inode of the socket's file: stop() removes no other file
  ino_t inode_ = 0;
  Handler handler_;
  std::thread thread_;
};

}  // namespace kymo::daemon
