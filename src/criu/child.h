#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "criu/rpc.pb.h"
#include "kymo/result.h"

namespace kymo::criu {

// One `criu swrk` and the socket to it; or one criu started by its command line, without a socket.
//
// Threads:   one at a time.
// Ownership: owns the process: the destructor kills its process group if it still runs, and reaps
// it. Errors:    name the binary. not_found or the system's: it does not start; unavailable: it
// ended
//            without an answer, with its exit status and its last words on stderr;
//            deadline_exceeded; cancelled.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  // `path` with a slash is a file, else it is looked up on PATH. Timeout 0: none. `cancel`, which
  // may be null and must outlive the child, ends it as its time being over does.
  static Result<std::unique_ptr<Child>> start(const std::string& path,
                                              std::chrono::milliseconds timeout,
                                              const Cancellation* cancel = nullptr);
  // `criu ARGUMENTS`; not for send() and receive().
  static Result<std::unique_ptr<Child>> start_command(const std::string& path,
                                                      std::vector<std::string> arguments,
                                                      std::chrono::milliseconds timeout,
                                                      const Cancellation* cancel = nullptr);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends nothing once its time is over or it is cancelled: what it is told then, it would do, and
  // be killed while at it.
  Result<void> send(const wire::Request& request);
  // Waits for the next packet, until the child ends or its time is over.
  Result<wire::Response> receive();
  // Waits until `fd` can be read (true) or the process has ended (false), or its time is over.
  Result<bool> wait_for(int fd);
  // When its time is over.
  [[nodiscard]] Clock::time_point deadline() const;
  // Of one that has ended: an error with its exit status and last words unless it ended well.
  Result<void> check_end();
  // Waits until the process has ended (kills it when its time is over or it lingers) and reaps it.
  // Returns its whole life in nanoseconds.
  std::uint64_t finish();
  // How often it waited for the disk to have its own files, or swapped memory; known once it has
  // ended.
  [[nodiscard]] std::uint64_t major_faults() const { return major_faults_; }

 private:
  Child() = default;
  static Result<std::unique_ptr<Child>> launch(const std::string& path,
                                               std::vector<std::string> words, int socket,
                                               std::chrono::milliseconds timeout,
                                               const Cancellation* cancel);
  [[nodiscard]] int remaining_ms() const;
  [[nodiscard]] bool is_over() const { return is_asked(cancel_) || remaining_ms() == 0; }
  Error ended_early();
  Error ended_by_us();
  void wait_until_killable() const;
  [[nodiscard]] bool ends_within(std::chrono::milliseconds time) const;
  [[nodiscard]] Error lingering() const;
  void reap(bool kill_first);

  std::string path_;
  std::chrono::milliseconds timeout_{0};
  const Cancellation* cancel_ = nullptr;
  Clock::time_point started_;
  std::uint64_t life_ns_ = 0;
  std::uint64_t major_faults_ = 0;
  pid_t pid_ = -1;        // -1: reaped
  bool lingers_ = false;  // killed, and not ended yet
  int wait_status_ = 0;
  int socket_ = -1;
  int process_fd_ = -1;
  int stderr_ = -1;  // an unlinked file in memory that holds what criu says there
};

}  // namespace kymo::criu
