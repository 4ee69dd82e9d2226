#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// How a process lives that runs a function of this program.
struct ChildLife {
  enum class Ends : unsigned char {
    by_itself,
    with_parent,  // the kernel kills it when the thread that starts it ends, and so when this program ends
  };

  const char* what = "start a process";  // what is tried, for errors
  const char* name = nullptr;            // at most 15 bytes; null: that of this program
  Ends ends = Ends::with_parent;
  int nice = 0;  // 0: that of this program
  // Ignores the signals that a terminal or systemd sends to all processes of the program.
  bool on_duty = false;
  // Standard input, output and error are /dev/null, and of all others only `keeps` stay open.
  bool silent = false;
  std::vector<int> keeps{};
};

// Starts a child process, which runs `work` and ends with the exit code that it returns, or with 1 if it throws.
// Programs are started by spawn(). This one is for what needs the memory of this program: a reader that is confined
// before it reads, a process that writes what is in memory, a tracer.
//
// The child has one thread. `work` must not use anything that another thread of this program may hold, such as a lock.
// What the child owns belongs to this program: it ends by _exit(2), without destructors and without writing what is
// buffered.
//
// Threads:   any.
// Ownership: the caller must reap the child.
// Errors:    the system's.
Result<pid_t> fork_child(const ChildLife& life, const std::function<int()>& work);

}  // namespace kymo
