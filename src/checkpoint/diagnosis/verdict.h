#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/images/memory_shape.h"
#include "checkpoint/diagnosis/phases.h"

namespace kymo::diagnosis {

// A stretch of time in nanoseconds since the request began.
struct Window {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;

  [[nodiscard]] std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

// What was measured inside the window of a request (docs/phases.md). A member without a value was not measured.
struct Signals {
  std::optional<std::uint64_t> cpu_ns;           // of CRIU; in a restore also of what is restored
  std::optional<std::uint64_t> cpu_wait_ns;      // they were ready to run and had no CPU
  std::optional<std::uint64_t> disk_wait_ns;     // CRIU waited for a disk
  std::optional<std::uint64_t> socket_wait_ns;   // it waited in a call on a socket, for the target
  std::optional<std::uint64_t> process_wait_ns;  // it waited for a process or a tracee
  std::optional<std::uint64_t>
      pipe_wait_ns;  // it waited in a call that moves bytes, for kymod if it streams
  std::optional<std::uint64_t>
      target_cpu_wait_ns;  // of a dump: the target was ready to run and had no CPU
  std::optional<std::uint64_t> throttled_ns;  // the part of it in which dirty pages were balanced
  std::optional<std::uint64_t> stopped_ns;    // a signal had stopped CRIU
  // Of the whole request, before the window began: CRIU was stopped; and while it looked at the kernel, it was stopped or
  // had no CPU.
  std::optional<std::uint64_t> stopped_before_ns;
  std::optional<std::uint64_t> probe_held_ns;
  std::optional<std::uint64_t> criu_quota_ns;    // a limit of CPU time held up CRIU's cgroup
  std::optional<std::uint64_t> target_quota_ns;  // and that of the target
  std::optional<std::uint64_t> machine_ns;       // CPU time of all programs of the machine
  std::optional<std::uint64_t> kymod_gaps_ns;    // kymod itself did not run
  std::optional<std::uint64_t>
      answer_gaps_ns;  // the part of it in which CRIU waited for its answers
  // CPU time of kymod while CRIU could run, not before and after it, also what it did for a stream.
  std::optional<std::uint64_t> kymod_ns;
  std::optional<std::uint64_t> kymod_looks_ns;  // in the whole request, to look inside it
  std::optional<std::uint64_t> steal_ns;        // CPU time that the hypervisor gave to others
  std::optional<std::uint64_t> memory_wait_ns;  // some task of the machine waited for memory
  std::optional<std::uint64_t> wakeups;         // how often CRIU was given a CPU
  std::optional<std::uint64_t> target_ns;       // the target ran or was ready to run; of a dump
  std::optional<std::uint64_t> target_disk_wait_ns;
  std::optional<std::uint64_t> major_faults;         // of CRIU and the target
  std::optional<std::uint64_t> faults;               // page faults of what is restored
  std::optional<std::uint64_t> freeze_disk_wait_ns;  // target_disk_wait_ns while CRIU froze
};

// What kymod did for a streamed dump.
struct Streaming {
  bool compressed = false;
  std::uint64_t work_ns = 0;     // it read, compressed or had no CPU for that
  std::uint64_t wait_ns = 0;     // it waited for the disk
  std::uint64_t starved_ns = 0;  // the part of work_ns in which it had no CPU
  std::string codec{};           // such as "zstd, level 3"; empty: not known
};

// The thread of the target that was longest seen in uninterruptible sleep.
struct SleepingThread {
  std::int64_t id = 0;
  std::string where;  // the function of the kernel; empty: not known
};

// How fast dumps of this machine have written memory, in bytes a second.
struct WriteRates {
  std::size_t dumps = 0;
  double usual = 0;  // the median
  double fast = 0;   // nine in ten were slower
};

// What gives kymod, and CRIU that it starts, more CPU time than others have (sched(7)).
enum class Priority {
  nice,       // the nice value
  autogroup,  // that of the session; that of a thread counts only within its session
  cgroup,     // the weight of the cgroup
};

// The group of a session, which shares the CPUs with those of other sessions (sched(7)).
struct Autogroup {
  std::int64_t pid = 0;  // of a process in it; 0: not known, or another group counts
  std::string name{};    // such as "/autogroup-7"
  int nice = 0;          // -20 to 19; -20 gets the most
};

// The limit of a cgroup's CPU time.
struct Quota {
  std::string folder{};  // empty: there is none, or it is not known
  double cpus = 0;
};

// What is known of a dump or restore.
struct Facts {
  bool restore = false;
  bool container = false;
  bool by_containerd = false;  // containerd starts its CRIU, not kymod
  // Of one that did not succeed: "failed", "was cancelled" or "ran out of time".
  std::string ending{};
  std::string unbegun{};                 // of one that ended before CRIU was started: its last step
  bool ended = false;                    // the dump ended its processes
  std::optional<Streaming> streaming{};  // the images passed through kymod
  unsigned cpus = 1;                     // of the machine
  std::uint64_t duration_ns = 0;
  std::vector<Phase> phases;
  std::optional<criu::DumpStats> dump;
  std::optional<criu::RestoreStats> restored;
  std::optional<criu::MemoryShape> shape;
  bool kernel_known = false;  // /run is a tmpfs, so CRIU keeps there what it learned of the kernel
  bool recorded = true;  // by kymod, which answered CRIU's notifications if it was a plain process
  // Action scripts of somebody else, which CRIU runs, each with its configuration file.
  std::vector<std::string> scripts{};
  // Of the window: kymod knew what CRIU asked, and had not answered yet.
  std::uint64_t answering_ns = 0;
  std::optional<SleepingThread> sleeper;
  std::string program{};               // CRIU, as kymod starts it; empty: not known
  bool connections = false;            // the images may have open TCP connections
  std::string log{};                   // the path of CRIU's log; empty: not known
  criu::LogPause longest_pause{};      // in that log, if it divides the dump
  std::optional<WriteRates> earlier;   // nothing: too few dumps
  std::optional<Priority> priority{};  // of CRIU; nothing: not known
  Autogroup kymod_group{};             // of kymod, and of CRIU that it starts
  Autogroup target_group{};            // of a dump, before it
  Quota kymod_quota{};                 // of kymod or CRIU: the tightest
  Quota target_quota{};                // of a dump, before it; of a restore, after it
  std::uint64_t image_bytes = 0;       // of a dump, as they are stored; 0: not known
  std::string
      unstreamed_by{};  // the option with which images cannot be compressed; empty: none was given
  std::optional<double> zstd_share{};  // the part of its memory that an earlier dump took with zstd
  // The median standstills of earlier dumps of the same target, in nanoseconds; 0: there is none.
  std::uint64_t zstd_still_ns = 0;   // with zstd
  std::uint64_t plain_still_ns = 0;  // not compressed
  std::uint64_t stacks_wait_ns = 0;  // before CRIU was started, for the processes that take stacks
  Signals signals;                   // of window_of(phases, restore)
};

// Whether a rule may look at `shape`, so that it is worth the 2 to 3 ms to find it out. Looks at all other facts.
bool needs_shape(const Facts& facts);

// The time that is explained: of a dump the time in which the processes stood still, if they did, of a restore
// all of it. Empty if nothing is known of it.
Window window_of(const std::vector<Phase>& phases, bool restore);

// How long the processes of a dump stood still, from the first that was stopped to the last that ran on
// or ended: by CRIU's statistics, of which freezing and frozen time are the two parts, and what its runtime held
// a container for (held_ns()), else by the phases, as after a failure. 0: unknown, or they did not.
std::uint64_t stood_still_ns(const std::optional<criu::DumpStats>& stats,
                             const std::vector<Phase>& phases);

// From and to, in nanoseconds.
using Range = std::pair<std::uint64_t, std::uint64_t>;

// A cause that a rule has found.
struct Cause {
  std::string rule;       // a permanent name
  std::string shortly;    // at most five words
  double share = 0;       // of the time that is explained
  std::string evidence;   // one sentence
  std::string threshold;  // from when on the rule speaks
  std::string advice;     // one sentence; empty: nothing is known that helps
  // How long the processes would stand still, or the restore would take, if the advice is followed.
  std::optional<Range> estimate_ns{};
  // What else helps, or does not. Nobody knows how much time that would take. Empty: nothing.
  std::string also{};
};

struct Verdict {
  std::vector<std::string> lines;  // at most eight
  // The first of them that names a cause, or says what to do. lines.size(): nothing stands out.
  std::size_t causes_from = 0;
  std::string shortly;
  std::uint64_t frozen_ns = 0;    // of a dump: stood_still_ns()
  std::uint64_t duration_ns = 0;  // of the request; 0: not known
  std::vector<Cause> findings;    // the largest share first
  // As Cause::estimate_ns, if all is done that the lines advise. Causes may overlap: at worst, the best of these
  // advices helps alone. Nothing: none has an estimate.
  std::optional<Range> estimate_ns{};
  // What CRIU did in the time that is explained, as a name and a share: cpu, cpu_wait, no_cpu, quota, disk_wait, steal; of a dump
  // also target_wait, target_cpu_wait, and what kymod did that takes its stream: kymod_cpu_wait, kymod_disk_wait,
  // compression. What was not looked at is missing.
  std::vector<std::pair<std::string, double>> shares;
};

// Says why a dump or restore took so long, by the rules of docs/phases.md. A rule whose signal was
// not looked at says nothing.
//
// Cost: one pass over the phases for each rule.
Verdict explain(const Facts& facts);

nlohmann::json to_json(const Verdict& verdict);

}  // namespace kymo::diagnosis
