#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::probe {

// What the kernel knows about a process tree. All figures but the last four are cumulative.
struct TreeTotals {
  std::uint64_t cpu_ns = 0;         // resolution: 1 ns for running processes, 10 ms for ended ones
  std::uint64_t user_us = 0;        // in steps of the kernel's clock tick
  std::uint64_t system_us = 0;      // in steps of the kernel's clock tick
  std::uint64_t read_bytes = 0;     // by read(2) and similar calls, from any source
  std::uint64_t written_bytes = 0;  // by write(2) and similar calls, to any destination
  std::uint64_t disk_read_bytes = 0;
  std::uint64_t disk_written_bytes = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t voluntary_switches = 0;    // of the threads that were seen
  std::uint64_t involuntary_switches = 0;  // of the threads that were seen
  std::uint64_t resident_bytes = 0;
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;
  // Processes that a signal or a tracer (such as the freeze of a dump) has stopped.
  std::uint64_t stopped = 0;
};

// A process and its descendants. They are read repeatedly, from files of /proc that stay open.
//
// When a parent waits for a child that has ended, the kernel adds the child's figures to those of
// the parent. The tree reads parents before their children, so that nothing is counted twice, and a
// cumulative figure that it returns never decreases. It looks for new descendants every
// kDiscoverNs. A process that lives shorter than this is counted in its parent's figures, except
// for its context switches. A descendant whose parent ends stays in the tree as long as it lives.
//
// Threads: one at a time.
// Cost:    read() takes three system calls for each process and one for each thread, about 30 us
//          for a process with one thread.
class ProcessTree {
 public:
  static constexpr std::uint64_t kDiscoverNs = 10'000'000;

  // `adopter`, if not 0, is the process that becomes the parent of the tree's orphans
  // (PR_SET_CHILD_SUBREAPER). All its children are counted as well.
  // Errors: not_found, permission_denied (another user's process: run as root).
  static Result<ProcessTree> open(pid_t root, pid_t adopter = 0, std::string proc = "/proc");
  ProcessTree(ProcessTree&&) noexcept;
  ProcessTree& operator=(ProcessTree&&) noexcept;
  ~ProcessTree();

  // Reads the totals now. Returns false if no process of the tree is left except zombies.
  bool read(std::uint64_t now_monotonic_ns, TreeTotals* totals);

 private:
  struct State;
  explicit ProcessTree(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::probe
