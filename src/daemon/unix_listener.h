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

// A unix socket whose callers are known: each connection's credentials are checked before anybody
// else sees it. Allowed are root, the daemon's own user and the members of the socket's group.
//
// Threads:   bind() before other threads start (it sets the umask for an instant); serve() starts
// one
//            thread, stop() joins it.
// Ownership: an accepted descriptor belongs to the handler. The socket's file is removed by stop(),
//            unless another has taken its place.
// Errors:    bind(): a socket already served, a file that is no socket, no permission; one line
// each.
//            A refused caller is logged with uid and pid and its connection closed.
class UnixListener {
 public:
  using Handler = std::function<void(int fd)>;

  // Binds `path`, mode 0600, or 0660 for `group` where one is named; replaces a socket that nobody
  // serves. The socket has its mode before it listens, so that no caller slips in earlier.
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
  FileDescriptor wake_;  // an eventfd: written once to end the loop
  const std::optional<gid_t> group_;
  dev_t device_ = 0;  // what stop() may remove
  ino_t inode_ = 0;
  Handler handler_;
  std::thread thread_;
};

}  // namespace kymo::daemon
