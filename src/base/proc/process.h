#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::probe {

// What the kernel says about a process. In all functions, `root` replaces /proc in tests.
struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  pid_t tracer = 0;  // 0: none
  char state = '?';  // R S D Z T t X, as in ps
  bool kernel_thread = false;
  bool ending = false;              // it is exiting, or it was killed and is not gone yet
  bool first_thread_ended = false;  // and others run on: the kernel shows it as a zombie
  // The start time in clock ticks since boot. With the pid it identifies a process uniquely.
  std::uint64_t start_ticks = 0;
  std::uint64_t resident_bytes = 0;
  uid_t uid = 0;                     // the effective one
  std::string name;                  // at most 15 characters
  std::vector<std::string> command;  // empty for a kernel thread or a zombie

  [[nodiscard]] bool zombie() const {
    return (state == 'Z' || state == 'X') && !first_thread_ended;
  }
  // It or its first thread has ended: /proc/PID shows no memory and no files of it.
  [[nodiscard]] bool shows_nothing() const { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool stopped() const { return state == 'T' || state == 't'; }
  // It uses a processor or waits for one.
  [[nodiscard]] bool runnable() const { return state == 'R'; }
};

// Errors: not_found if there is no such process; data_loss if the kernel's text is not as in
//         proc(5); others if the process cannot be looked at, for example because no file
//         descriptor is free. Those say nothing about the process.
Result<Process> read_process(pid_t pid, const std::string& root = "/proc");

// The parent of a process. 0: none, or it is outside this pid namespace. Reads one file, where read_process() reads three.
// Errors: those of read_process().
Result<pid_t> parent_of(pid_t pid, const std::string& root = "/proc");

enum class Life : std::uint8_t {
  runs,
  ended,    // or it is a zombie, is exiting, or was killed and is not gone yet
  unknown,  // it could not be looked at
};

// Whether this very process still runs. `start_ticks` 0 matches any process of that pid.
Life life_of(pid_t pid, std::uint64_t start_ticks, const std::string& root = "/proc");

// Returns false only if the process is known to have ended. This is for callers that act on its
// end. A caller that kills must use life_of(), because this also returns true if the state is
// unknown.
bool process_lives(pid_t pid, std::uint64_t start_ticks, const std::string& root = "/proc");

// Whether the main thread is in an uninterruptible wait, usually for a disk: then no signal ends it.
bool waits_in_kernel(pid_t pid, const std::string& root = "/proc");

// Returns a file descriptor, closed on exec, that becomes readable when the process ends. The
// caller closes it. Returns -1 and sets errno if the process is gone or if no descriptor is free.
int open_process(pid_t pid);

// All processes of the machine, or of the container that this one is in.
std::vector<pid_t> all_processes(const std::string& root = "/proc");

// The threads of a process. Empty if the process is gone.
std::vector<pid_t> threads_of(pid_t pid, const std::string& root = "/proc");
// The children of all threads of a process. Empty if the process is gone.
// Errors: they cannot be listed, for example because no descriptor is free.
Result<std::vector<pid_t>> children_of(pid_t pid, const std::string& root = "/proc");

// The children of one of its threads. Empty if that is gone.
// Errors: as children_of().
Result<std::vector<pid_t>> children_of_thread(pid_t pid, pid_t thread,
                                              const std::string& root = "/proc");

// The process and its descendants, the process first. Empty if the process is gone. Descendants that
// cannot be listed are missing.
std::vector<pid_t> process_tree(pid_t pid, const std::string& root = "/proc");
// The same for callers that must miss none.
// Errors: those of children_of() and of read_process(), except that a process is gone.
Result<std::vector<pid_t>> whole_process_tree(pid_t pid, const std::string& root = "/proc");

// Returns the ids of the threads of the tree that are stopped, also by a tracer, or that cannot be
// looked at, and the pids of processes whose threads cannot be listed. Empty if all threads can
// run.
std::vector<pid_t> stopped_threads(pid_t pid, const std::string& root = "/proc");

// The same, and the threads that have a tracer. A thread that sleeps in code of its tracer, such as
// CRIU's parasite, is not stopped, but it does not run its own program either.
std::vector<pid_t> halted_threads(pid_t pid, const std::string& root = "/proc");

}  // namespace kymo::probe
