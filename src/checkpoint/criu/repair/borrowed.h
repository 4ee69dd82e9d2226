#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/folder_entries.h"
#include "base/mappings.h"

namespace kymo::criu {

// Whether the mapping belongs to CRIU's parasite.
inline bool is_parasite(const Mapping& mapping) {
  return mapping.name.find("memfd:CRIUMFD") != std::string::npos;
}

// The tracer of a process: the entry `name` of the folder /proc, which is open. 0: it has none, or is gone.
// Allocates no memory.
pid_t tracer_of(int proc, const char* name);

// Calls look(pid) for each process that is traced by `tracer` or by a process of its process group. Allocates no memory,
// so a fork of a program with threads may use it.
// Cost: reads the status of every process of the machine.
template <class Look>
void for_each_traced_by(pid_t tracer, const char* root, Look&& look) {
  const FileDescriptor proc(::open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for_each_numbered_entry(proc.get(), [&](const char* name, pid_t pid) {
    const pid_t its_tracer = tracer_of(proc.get(), name);
    if (its_tracer != 0 && (its_tracer == tracer || ::getpgid(its_tracer) == tracer)) look(pid);
  });
}

// Returns those processes. `root` replaces /proc in tests.
std::vector<pid_t> traced_by(pid_t tracer, const std::string& root = "/proc");

// Returns whether `tracer`, or a process of its process group, borrows a process: a thread that it
// traces is in CRIU's code, or is running and so may be in it.
//
// CRIU executes its own code in the processes that it traces: system calls that it writes over the
// beginning of an executable mapping, and its parasite, which it maps from a memfd
// (compel/src/lib/infect.c). If CRIU is killed at that time, the process goes on in that code and
// dies by SIGTRAP, by SIGSEGV, or by SIGPIPE if the parasite answers into a closed socket. But if
// the parasite waits for a command, it notices that CRIU is gone and gives the process back. CRIU
// borrows a process for at most a millisecond, except when it transfers pages.
//
// Call this while the tracer is stopped. What its processes do then ends by itself. Also returns
// true if a process cannot be looked at, for example because no file descriptor is free. `root`
// replaces /proc in tests.
// Cost: reads the status of every process of the machine.
bool borrows_a_process(pid_t tracer, const std::string& root = "/proc");

// How long the killer of CRIU waits until CRIU borrows no process: kMaxBorrowing. The time in which
// CRIU or a process that it traces waits for a processor does not count, because on a busy machine
// they need longer. In all it waits at most kMaxStarvedBorrowing.
//
// Threads: one.
// Cost:    over() reads the status of every process of the machine once the first limit is reached.
class BorrowingLimit {
 public:
  static constexpr std::chrono::milliseconds kMaxBorrowing{2000};
  static constexpr std::chrono::milliseconds kMaxStarvedBorrowing{8000};

  // `root` replaces /proc in tests.
  explicit BorrowingLimit(std::vector<pid_t> tracers, std::string root = "/proc",
                          std::chrono::milliseconds limit = kMaxBorrowing);
  [[nodiscard]] bool over() const;

 private:
  [[nodiscard]] std::chrono::nanoseconds waited_for_processors() const;

  std::vector<pid_t> tracers_;
  std::string root_;
  std::chrono::milliseconds limit_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds at_begin_{0};
};

// Whether the process uses a processor or waits for one. After SIGSTOP such a process will stop,
// but on a busy machine perhaps late. A process that waits for a disk may never stop.
bool is_runnable(pid_t pid);
// How long a killer waits for the stop of a runnable process.
inline constexpr std::chrono::milliseconds kRunnableStopsWithin{4000};

// The next pause between two calls of borrows_a_process(), in which CRIU runs, after a pause of
// `before`. The pauses get longer, because on a busy machine CRIU first waits for a processor.
inline std::chrono::milliseconds next_look(std::chrono::milliseconds before) {
  return std::min(2 * before, std::chrono::milliseconds(32));
}

}  // namespace kymo::criu
