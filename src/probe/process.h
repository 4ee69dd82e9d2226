#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::probe {

// What the kernel says of a process. `root` stands in for /proc in tests.
struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  pid_t tracer = 0;  // 0: none
  char state = '?';  // R S D Z T t X, as in ps
  bool kernel_thread = false;
  bool ending = false;  // on its way out, or killed and not yet gone
  std::uint64_t start_ticks =
      0;  // clock ticks since boot: with the pid it names a process for good
  std::uint64_t resident_bytes = 0;
  uid_t uid = 0;                     // the effective one
  std::string name;                  // at most 15 characters
  std::vector<std::string> command;  // empty for a kernel thread or a zombie

  [[nodiscard]] bool zombie() const { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool stopped() const { return state == 'T' || state == 't'; }
};

// Errors: not_found: no such process; data_loss: the kernel's text is not what proc(5) says; else
// it could not be looked at, such as for want of a descriptor, which says nothing about the
// process.
Result<Process> read_process(pid_t pid, const std::string& root = "/proc");

enum class Life : std::uint8_t {
  runs,
  ended,    // a zombie does not run, nor does one that was killed and has yet to notice
  unknown,  // it could not be looked at
};

// Whether this very process still runs. `start_ticks` 0 matches any process of that pid.
Life life_of(pid_t pid, std::uint64_t start_ticks, const std::string& root = "/proc");

// False only of one that is known to have ended: for callers that act when it has, not for callers
// that kill.
bool process_lives(pid_t pid, std::uint64_t start_ticks, const std::string& root = "/proc");

// A descriptor, closed on exec, that becomes readable when the process ends; the caller closes it.
// -1 with errno set: it is gone already, or no descriptor is left.
int open_process(pid_t pid);

// Its threads; its children, of whichever thread. Empty when it is gone.
std::vector<pid_t> threads_of(pid_t pid, const std::string& root = "/proc");
std::vector<pid_t> children_of(pid_t pid, const std::string& root = "/proc");

// The process and its descendants, itself first; empty when it is gone.
std::vector<pid_t> process_tree(pid_t pid, const std::string& root = "/proc");

// Threads of the tree that are stopped or traced, as their ids, and processes whose threads could
// not be looked at; none: every one can run.
std::vector<pid_t> stopped_threads(pid_t pid, const std::string& root = "/proc");

}  // namespace kymo::probe
