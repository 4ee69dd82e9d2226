#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/inside/source.h"
#include "checkpoint/inside/subjects.h"

namespace kymo::inside {

// What is looked at during a request.
struct Observed {
  pid_t pid = 0;           // the root of what is dumped or restored; 0: not known
  bool container = false;  // its cgroup is its own
  // The id that its runtime gives to a container which is being restored and has no known pid yet.
  std::string restored_container;
  std::string images_dir;  // an existing folder on the disk of the images
  bool restores = false;
};

// Sources that every user of the kernel's files may read. `proc` and `sys` replace /proc and /sys in
// tests. docs/phases.md describes the columns, and the cost of each.

// Columns criu_...: the programs of `subjects` with all their descendants. If another program starts
// CRIU (containerd), CRIU is found as the tracer of the target of a dump, or below the program that
// looks after the container of a restore. The processes that are restored are left out.
std::unique_ptr<Source> make_criu_source(const Observed& target, std::shared_ptr<Subjects> subjects,
                                         const std::string& proc = "/proc");
// Columns target_...: the tasks of a process and its descendants. The process may begin later. 0:
// that of `subjects`.
std::unique_ptr<Source> make_target_source(pid_t pid, std::shared_ptr<Subjects> subjects = nullptr,
                                           const std::string& proc = "/proc");
// Columns machine_...: CPU time and memory of the whole machine.
std::unique_ptr<Source> make_machine_source(const std::string& proc = "/proc");
// Columns disk_...: the block device below the folder. It has no columns if there is none.
std::unique_ptr<Source> make_disk_source(const std::string& folder,
                                         const std::string& sys = "/sys");
// Columns cgroup_...: the cgroup of a process. 0: the cgroup of the target of `subjects`, once it has left that of kymod.
std::unique_ptr<Source> make_cgroup_source(pid_t pid, std::shared_ptr<Subjects> subjects = nullptr);

// Columns quota_criu_wait_ns and quota_target_wait_ns: how long the limits of CPU time of kymod's cgroup and of that of the
// CRIU that `subjects` found, and those of the target, have held up their programs since then. 0 while there is no limit. A
// target that is restored counts once it has left the cgroup of kymod, and then all that the new cgroup of a container was
// held up, with the CRIU that its runtime runs there.
std::unique_ptr<Source> make_quota_source(const Observed& target,
                                          std::shared_ptr<Subjects> subjects);

// Column kymod_cpu_ns: the CPU time of this program.
std::unique_ptr<Source> make_kymod_source();

// All sources that have columns for this target.
std::vector<std::unique_ptr<Source>> make_sources(const Observed& target,
                                                  std::shared_ptr<Subjects> subjects);

}  // namespace kymo::inside
