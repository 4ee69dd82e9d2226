#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::probe {

// What the kernel knows of a process tree. All but the last four are cumulative.
struct TreeTotals {
  std::uint64_t cpu_ns = 0;         // to the nanosecond for what runs, to 10 ms for what has ended
  std::uint64_t user_us = 0;        // in steps of the kernel's clock tick
  std::uint64_t system_us = 0;      // likewise
  std::uint64_t read_bytes = 0;     // by read(2) and its like, from anything
  std::uint64_t written_bytes = 0;  // by write(2) and its like, to anything
  std::uint64_t disk_read_bytes = 0;
  std::uint64_t disk_written_bytes = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t voluntary_switches = 0;    // of the threads that were seen
  std::uint64_t involuntary_switches = 0;  // likewise
  std::uint64_t resident_bytes = 0;
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;
  std::uint64_t stopped =
      0;  // processes that a signal or a tracer (a checkpoint's freeze) has stopped
};

// A process and its descendants, read again and again from files of /proc that stay open.
//
// What an ended child has used the kernel adds to its parent's figures when the parent waits for
// it. Parents are read before their children, so that nothing is counted twice meanwhile; and no
// cumulative figure is ever given lower than before. New descendants are looked for every
// kDiscoverNs: what lived shorter counts by its parent's figures, except in the switches.
// Descendants whose parent ends stay in the tree for as long as they live.
//
// Threads: one at a time. Cost: read() takes three system calls a process and one a thread, about
// 30 us for one of one thread.
class ProcessTree {
 public:
  static constexpr std::uint64_t kDiscoverNs = 10'000'000;

  // `adopter`, where not 0, is the process that the tree's orphans fall to
  // (PR_SET_CHILD_SUBREAPER): all its children count as well.
  // Errors: not_found, permission_denied (another user's: run as root).
  static Result<ProcessTree> open(pid_t root, pid_t adopter = 0, std::string proc = "/proc");
  ProcessTree(ProcessTree&&) noexcept;
  ProcessTree& operator=(ProcessTree&&) noexcept;
  ~ProcessTree();

  // The totals now; false once no process of the tree is left but zombies.
  bool read(std::uint64_t now_monotonic_ns, TreeTotals* totals);

 private:
  struct State;
  explicit ProcessTree(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::probe
