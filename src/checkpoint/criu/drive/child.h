#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "checkpoint/criu/repair/guard.h"
#include "kymo/result.h"

namespace kymo::criu {

// One criu.
//
// Threads:   one at a time.
// Ownership: owns the process. The destructor kills its process group if it still runs, and reaps
//            the process.
// Errors:    name the binary. not_found or the system's if it does not start; deadline_exceeded;
//            cancelled.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  // Runs `PATH ARGUMENTS`. A `path` with a slash is a file; any other is looked up on PATH. Timeout 0:
  // no limit. `cancel` ends the process like the timeout does. It may be null, and it must outlive
  // the child. `inherited`: descriptors that criu gets with the numbers from kFirstInherited on.
  static Result<std::unique_ptr<Child>> start(const std::string& path,
                                              std::vector<std::string> arguments,
                                              std::chrono::milliseconds timeout,
                                              const Cancellation* cancel = nullptr,
                                              const std::vector<int>& inherited = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits until `fd` can be read (true) or the process has ended (false). If the time is over or
  // the request is cancelled, it kills the process and returns an error.
  Result<bool> wait_for(int fd);
  // The point in time at which the timeout is over; the maximum if there is no timeout.
  [[nodiscard]] Clock::time_point deadline() const;
  // Call it before criu is told to go on. If the time is over or the request is cancelled, kills the process and returns
  // an error: otherwise criu would go on and be killed in the middle of its work.
  Result<void> check_time();
  // Calls finish(). Errors: failed_precondition: the process did not exit with status 0; unavailable: a
  // signal ended it. With its last line.
  Result<void> check_end();
  // Waits until the process has ended, and reaps it. Kills it if its time is over or if it does not
  // end soon. Returns the time from its start to its end in nanoseconds.
  std::uint64_t finish();
  // The processes that criu works on are killed after it, so it may be killed at any instant.
  void may_lose_processes() { may_lose_processes_ = true; }
  // For a dump of TCP connections: whoever kills criu, its processes run only when their connections
  // work again (Guard). Call it before the first answer to criu. Without a process or a descriptor for the
  // guard, criu works without one.
  void keep_connections();
  // What the process has written to its stdout and stderr: the last 4 KiB. Known also after its end.
  [[nodiscard]] std::string output() const;
  // The last line of it. Empty if there is none.
  [[nodiscard]] std::string said() const;
  // The name of its program now, or at its end (comm, proc(5)). Empty if it is not known.
  [[nodiscard]] std::string name() const;
  // How often the process waited until the disk had read its own files or swapped memory. Known
  // after its end.
  [[nodiscard]] std::uint64_t major_faults() const { return major_faults_; }

 private:
  Child() = default;
  struct Ready {
    bool fd = false;     // can be read
    bool ended = false;  // the process
  };
  // Waits until `fd` can be read, the process has ended, the time is over or the request is
  // cancelled. It may return earlier.
  Result<Ready> poll_with(int fd);
  [[nodiscard]] int remaining_ms() const;
  [[nodiscard]] bool is_over() const { return is_asked(cancel_) || remaining_ms() == 0; }
  Error ended_by_us();
  void wait_until_killable() const noexcept;
  [[nodiscard]] bool ends_within(std::chrono::milliseconds time) const;
  [[nodiscard]] Error lingering() const;
  void reap(bool kill_first);

  std::string path_;
  std::string name_;
  std::chrono::milliseconds timeout_{0};
  const Cancellation* cancel_ = nullptr;
  Clock::time_point started_;
  std::uint64_t life_ns_ = 0;
  std::uint64_t major_faults_ = 0;
  pid_t pid_ = -1;        // -1: reaped
  bool lingers_ = false;  // was killed, and has not ended yet
  bool may_lose_processes_ = false;
  int wait_status_ = 0;
  std::optional<Guard> guard_;
  int process_fd_ = -1;
  int output_ = -1;  // a file in memory (memfd) to which criu writes its stdout and stderr
};

}  // namespace kymo::criu
