#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/proc/process.h"
#include "checkpoint/criu/images/pstree.h"
#include "checkpoint/runtimes/shared/network_lock.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// The state of a process before its dump.
struct DumpTarget {
  probe::Process process;
  std::vector<ProcessId> tree;  // the process and its descendants, the process first
  std::vector<pid_t> halted;    // threads of the tree that were stopped or traced already
  NetworkOfDump network{};
};

// Checks whether kymod may manage this process. It must run, and kymod must be allowed to signal
// it. It must not be a kernel thread, init, this program, or a program that started this one.
// Errors: one line that begins with `tried`.
Result<probe::Process> check_program(const std::string& tried, const ProcessId& id);

// Checks whether the process or container can be dumped. In addition to check_program(), a plain
// process must not be frozen, and its session and its terminal must be ones that CRIU can restore.
// It changes nothing.
// Errors: one line that says what to do.
Result<probe::Process> check_target(const DumpSpec& spec);

// Checks the same as check_target(), and the directories of the dump. Returns what is to be dumped.
Result<DumpTarget> check_dump(const DumpSpec& spec);

// Returns the time until the deadline. 0: there is no deadline.
// Errors: deadline_exceeded.
Result<std::chrono::milliseconds> time_left(const DumpSpec& spec);

// Checks whether the images are complete and all their ids are free. Returns the processes in the
// images, the root first.
Result<std::vector<criu::ImageProcess>> check_images(const RestoreSpec& spec);
// Checks the same as check_images(), and that the work directory exists.
Result<std::vector<criu::ImageProcess>> check_restore(const RestoreSpec& spec);
// Returns the ids that a restore needs: of the processes, their threads, sessions and process groups.
std::set<pid_t> ids_of(const std::vector<criu::ImageProcess>& tree);

// After a failed dump: checks that no thread is stopped or traced that was not before. Waits at most
// two seconds for the stops by CRIU to end, and sends SIGCONT to threads that stay stopped. Does not
// wait that long for a CRIU that was killed but cannot end, because its disk does not answer. A thread
// with a tracer gets no signal: it is not ours to continue.
// Errors: data_loss if the process is gone; internal if a thread is still stopped; unavailable if a
//         tracer still holds it. The message says which one, and what to do.
Result<void> ensure_running(const DumpTarget& before);

// Returns the pid of a tracer of one of these processes that lives: another CRIU, or a debugger. What such
// a process has open or mapped belongs to its tracer. 0: there is none. A tracer that was killed does not
// count, nor does one that is this program: see held_by().
pid_t living_tracer(const std::vector<pid_t>& tree);

// Returns what holds the process for good: the pid of a tracer that was killed but cannot end, because it
// waits for its disk. The process stands still until that ends. 0: nothing.
// Cost: reads two files of /proc.
pid_t held_by(pid_t pid);
// A clause for a message: that this tracer holds the process, why, and what ends that.
std::string held_text(pid_t holder);
// The same for whatever makes the process stand still: such a tracer, one that has stopped it, a frozen cgroup or a
// signal. Empty: nothing does.
std::string what_holds(pid_t pid);

// Why kymod does not restore such processes: it knows a process by its pid, and these would get others.
inline constexpr const char* kOwnPidNamespace =
    "its processes have a pid namespace of their own, which kymod does not restore";

// Whether the process has another mount namespace than we, but the same root. CRIU makes that namespace anew in a
// restore, and must be told to put "/" at its root. False if it cannot be seen.
bool has_own_mounts_on_root(pid_t pid);

}  // namespace kymo::runtime
