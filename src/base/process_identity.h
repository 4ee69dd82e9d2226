#pragma once

#include <cstdint>
#include <string>

namespace kymo {

// What identifies a process beside its pid. A pid alone is given again after the process has ended,
// and each pid namespace, such as that of a container, has a process 1 of its own.
struct ProcessIdentity {
  std::string boot_id;              // boot_id() below. Empty: unknown
  std::uint64_t pid_namespace = 0;  // inode of the namespace in which its pid counts. 0: unknown
  // Clock ticks from the boot to its start, the same seen from each time namespace, to one tick.
  // 0: unknown
  std::uint64_t start_ticks = 0;
};

// The kernel's id of the present boot, which is the same in all containers. Empty if it cannot be
// read.
std::string boot_id();

// The inode of the namespace in which the machine's own process 1 is (PROC_PID_INIT_INO of the
// kernel's proc_ns.h). From there, all processes are visible.
inline constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;

// The inode of the pid namespace of this process. 0 if it is unknown.
std::uint64_t own_pid_namespace();

// This process. What cannot be read, for example without /proc, is unknown.
// Cost: four files of /proc.
ProcessIdentity own_identity();

// A start time that this process has read in /proc/PID/stat, as in ProcessIdentity::start_ticks:
// what is read there includes the offset of the reader's time namespace.
std::uint64_t without_time_namespace(std::uint64_t start_ticks);

}  // namespace kymo
