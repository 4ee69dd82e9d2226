#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "criu/guard.h"
#include "criu/rpc.pb.h"
#include "kymo/result.h"

namespace kymo::criu {

// One `criu swrk` and the socket to it, or one criu that was started by its command line and has no
// socket.
//
// Threads:   one at a time.
// Ownership: owns the process. The destructor kills its process group if it still runs, and reaps
//            the process.
// Errors:    name the binary. not_found or the system's if it does not start; unavailable if it
//            ended without an answer (with its exit status and its last line on stderr);
//            deadline_exceeded; cancelled.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  // A `path` with a slash is a file; any other is looked up on PATH. Timeout 0: no limit. `cancel`
  // ends the process like the timeout does. It may be null, and it must outlive the child.
  // `inherited`: descriptors that criu gets with the numbers from kFirstInherited on.
  static Result<std::unique_ptr<Child>> start(const std::string& path,
                                              std::chrono::milliseconds timeout,
                                              const Cancellation* cancel = nullptr,
                                              const std::vector<int>& inherited = {});
  // Runs `criu ARGUMENTS`. This process has no socket: do not call send() and receive().
  static Result<std::unique_ptr<Child>> start_command(const std::string& path,
                                                      std::vector<std::string> arguments,
                                                      std::chrono::milliseconds timeout,
                                                      const Cancellation* cancel = nullptr,
                                                      const std::vector<int>& inherited = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends nothing if the time is over or the request is cancelled. Otherwise criu would begin the
  // work and be killed in the middle of it.
  Result<void> send(const wire::Request& request);
  // Waits for the next packet, until the child ends or its time is over.
  Result<wire::Response> receive();
  // Waits until `fd` can be read (true) or the process has ended (false). If the time is over or
  // the request is cancelled, it kills the process and returns an error.
  Result<bool> wait_for(int fd);
  // The point in time at which the timeout is over; the maximum if there is no timeout.
  [[nodiscard]] Clock::time_point deadline() const;
  // Calls finish(). Returns an error with the exit status and the last line on stderr, unless the
  // process exited with status 0.
  Result<void> check_end();
  // Waits until the process has ended, and reaps it. Kills it if its time is over or if it does not
  // end soon. Returns the time from its start to its end in nanoseconds.
  std::uint64_t finish();
  // The processes that criu works on are killed after it, so it may be killed at any instant.
  void may_lose_processes() { may_lose_processes_ = true; }
  // For a dump of TCP connections: whoever kills criu, its processes run only when their connections
  // work again (Guard).
  // Call it before the first answer to criu. Without a process or a descriptor for the
  // guard, criu works without one.
  void keep_connections();
  // Leaves what the process has started as it is, also if somebody kills the process.
  void keep_group() { keeps_group_ = true; }
  // The last line that the process has written to its stderr. Empty if there is none.
  [[nodiscard]] std::string said() const;
  // How often the process waited until the disk had read its own files or swapped memory. Known
  // after its end.
  [[nodiscard]] std::uint64_t major_faults() const { return major_faults_; }

 private:
  Child() = default;
  static Result<std::unique_ptr<Child>> launch(const std::string& path,
                                               std::vector<std::string> words, int socket,
                                               std::chrono::milliseconds timeout,
                                               const Cancellation* cancel,
                                               const std::vector<int>& inherited);
  struct Ready {
    bool fd = false;     // can be read
    bool ended = false;  // the process
  };
  // Waits until `fd` can be read, the process has ended, the time is over or the request is
  // cancelled. It may return earlier.
  Result<Ready> poll_with(int fd);
  [[nodiscard]] int remaining_ms() const;
  [[nodiscard]] bool is_over() const { return is_asked(cancel_) || remaining_ms() == 0; }
  Error ended_early();
  Error ended_by_us();
  void wait_until_killable() const noexcept;
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
  bool lingers_ = false;  // was killed, and has not ended yet
  bool named_ = false;    // its name is noted (program_names.h)
  bool keeps_group_ = false;
  bool may_lose_processes_ = false;
  int wait_status_ = 0;
  std::optional<Guard> guard_;
  int socket_ = -1;
  int process_fd_ = -1;
  int stderr_ = -1;  // a file in memory (memfd) to which criu writes its stderr
};

}  // namespace kymo::criu
