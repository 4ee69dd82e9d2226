#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "profiler/stacks/event.h"

namespace kymo::stacks {

// A thread, or a process with all its threads.
struct Starter {
  pid_t id = 0;
  bool process = false;
};

// Whose stacks are taken.
struct Profiled {
  enum class Kind : std::uint8_t { machine, processes, cgroup };

  Kind kind = Kind::machine;
  // Of `processes`: those that there are; their later children belong to them. Of `cgroup`: those
  // that are in it now.
  std::vector<pid_t> pids;
  std::string cgroup;  // of `cgroup`: its folder, in a hierarchy of version 2
  // Of `processes`, and only by BPF: what these start from now on belongs to them as well, but not
  // they themselves.
  std::vector<Starter> starters{};
};

// A process and its descendants.
// Errors: not_found.
Result<Profiled> tree_of(pid_t pid);

// The processes of a cgroup and of the cgroups below it. Of a hierarchy of version 1, these are the
// processes that are in it now, and their later children.
// Errors: not_found; invalid_argument: it is no cgroup; failed_precondition: it is of version 1 and
//         empty.
Result<Profiled> cgroup_at(const std::string& folder);

// How stacks are taken.
struct Sampling {
  Profiled target;
  unsigned rate = 99;                        // samples a second of each CPU
  bool bpf = true;                           // otherwise only by perf_event_open(2)
  bool waits = false;                        // take the stacks of threads that wait instead
  std::uint64_t shortest_wait_ns = 100'000;  // shorter waits are only summed
};

// Counts of a source.
struct SourceCounts {
  std::uint64_t lost = 0;           // samples
  std::uint64_t lost_mappings = 0;  // records of what processes mapped, or how they began or ended
  std::uint64_t short_waits = 0;
  std::uint64_t short_wait_ns = 0;
  // CPU time of the BPF programs in the kernel, if it counts it (sysctl kernel.bpf_stats_enabled).
  std::uint64_t bpf_ns = 0;
};

// Takes stacks in the kernel.
//
// Threads: one.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Appends the events that have come since the last call, in any order.
  virtual void drain(std::vector<Event>& events) = 0;
  // Ends sampling. What was taken before can still be drained. Threads that wait now count as if
  // their waits ended now.
  virtual void stop() = 0;
  // Also takes the stacks of the processes `started`, as if `starter` had started them, and of
  // those that it starts from now on. Works only by BPF, and only if the target is a list of
  // processes.
  // Errors: unimplemented; those of the kernel.
  virtual Result<void> add(const Starter& starter, const std::vector<pid_t>& started);
  // A descriptor that becomes readable when the source should be drained soon; -1: none.
  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual SourceCounts counts() const = 0;
};

// By a BPF program.
// Errors: permission_denied: the rights CAP_BPF and CAP_PERFMON are missing; those of the kernel.
Result<std::unique_ptr<Source>> open_bpf_source(const Sampling& sampling);

// Why open_bpf_source() failed, and what would let it work.
std::string why_no_bpf(const Error& error);

// By perf_event_open(2), without BPF. It takes the same stacks of CPU time, and none of waits.
// Processes of its own user need no right if kernel.perf_event_paranoid is at most 2; it then takes
// no stacks of the kernel. Of a cgroup: the processes that are in it now, and their children.
// Errors: permission_denied; those of the kernel.
Result<std::unique_ptr<Source>> open_perf_source(const Sampling& sampling);

}  // namespace kymo::stacks
