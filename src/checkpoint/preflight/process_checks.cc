// Checks of what the processes are: their sessions, tracers, terminals and namespaces.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/proc/cgroup.h"
#include "base/proc/id_uses.h"
#include "base/proc/process.h"
#include "base/proc/terminals.h"
#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

constexpr int kDeadline = 6;  // SCHED_DEADLINE, which glibc does not name

// The last number of a line such as "NSpid:\t1234\t1": the id in the innermost pid namespace. -1 if
// there is no such line.
long innermost(std::string_view status, std::string_view key) {
  const std::string_view ids = value_of(status, key);
  if (ids.empty()) return -1;
  const std::size_t blank = ids.find_last_of(" \t");
  long id = 0;
  for (const char digit : ids.substr(blank == std::string_view::npos ? 0 : blank + 1)) {
    if (digit < '0' || digit > '9') return -1;
    id = id * 10 + (digit - '0');
  }
  return id;
}

// CRIU fails at once if the first process is traced, and waits for all others until its timeout.
void look_at_tracers(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    for (const Thread& thread : member.threads) {
      if (thread.tracer == 0) continue;
      const bool first = thread.tid == tree.first().process.pid;
      const Result<probe::Process> tracer = probe::read_process(thread.tracer);
      found.add(
          Grade::refuses, first ? "cannot-attach" : "freeze-timeout",
          place_of(member, "thread " + std::to_string(thread.tid) + ", tracer " +
                               std::to_string(thread.tracer) + (tracer ? " " + tracer->name : "")),
          "a process is traced already (by gdb, strace or another CRIU)",
          "End the tracer, and dump again.");
      break;  // one place for each process
    }
  }
}

// Whether the freezer of its cgroup has stopped the process: version 1 or 2 of cgroups.
bool is_frozen(const Tree& tree, pid_t pid) {
  const std::string groups = "/sys/fs/cgroup";
  if (const auto path = probe::cgroup_path(pid, "freezer", tree.proc)) {
    const Result<std::string> state = read_file(groups + "/freezer" + *path + "/freezer.state");
    if (state && state->starts_with("FROZEN")) return true;
  }
  const auto path = probe::cgroup_path(pid, "", tree.proc);
  if (!path) return false;
  for (const char* mount : {"", "/unified"}) {
    const Result<std::string> events = read_file(groups + mount + *path + "/cgroup.events");
    if (events && events->find("frozen 1") != std::string::npos) return true;
  }
  return false;
}

// A frozen process does not stop, so CRIU would wait until its timeout.
void look_at_freezers(const Tree& tree, const Options& options, Findings& found) {
  if (options.container) return;
  for (const Member& member : tree.members) {
    if (!is_frozen(tree, member.process.pid)) continue;
    found.add(Grade::refuses, "freeze-timeout", place_of(member), "a process is frozen",
              "Unfreeze it with kymo unfreeze, or with the program that froze it.");
  }
}

// CRIU takes a process whose first thread has ended for a zombie and cannot attach to it.
void look_at_ended_main_threads(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    if (member.process.first_thread_ended) {
      found.add(Grade::refuses, "cannot-attach", place_of(member),
                "the first thread of a process has ended, and others run on",
                "Let the first thread wait for the others.");
    }
  }
}

void look_at_sessions(const Tree& tree, const Options& options, Findings& found) {
  for (const Member& member : tree.members) {
    if (innermost(member.status, "NSsid") == 0) {
      found.add(Grade::refuses, "session-outside", place_of(member));
    }
  }
  const Member& first = tree.first();
  const long session = innermost(first.status, "NSsid");
  if (!options.shell_job && session > 0 && session != innermost(first.status, "NSpid")) {
    found.add(Grade::refuses, "tty-session",
              place_of(first, "session " + std::to_string(first.process.session)));
  }
}

// The ids that a restore needs: of the processes, and of the sessions and process groups whose leaders CRIU makes anew if
// they have ended. Those of the root are CRIU's own with --shell-job.
std::set<pid_t> ids_for_restore(const Tree& tree) {
  std::set<pid_t> ids;
  const pid_t group = ::getpgid(tree.first().process.pid);
  for (const Member& member : tree.members) {
    const pid_t pid = member.process.pid;
    ids.insert(pid);
    if (member.process.session != tree.first().process.session) ids.insert(member.process.session);
    if (::getpgid(pid) != group) ids.insert(::getpgid(pid));
  }
  return ids;
}

// The processes outside of the tree that are in a session or process group of it.
std::vector<probe::IdUse> uses_outside(const Tree& tree) {
  Result<std::vector<probe::IdUse>> uses = probe::uses_of(ids_for_restore(tree));
  if (!uses) return {};
  std::erase_if(*uses, [&](const probe::IdUse& use) {
    return use.as.empty() || use.process.zombie() || !tree.is_outside(use.process.pid);
  });
  return *std::move(uses);
}

// The kernel gives nobody the number of a session or process group that a process is in. So what a dump ends is not
// restored as long as another process is in its session. One that has just begun may leave it: what still is there after a
// while counts.
void look_at_ids(const Tree& tree, const Options& options, Findings& found) {
  constexpr std::chrono::milliseconds kSoonGone{300};
  constexpr std::chrono::milliseconds kLookEvery{20};
  if (options.container || tree.has_own(Kind::pid) || tree.proc != "/proc") return;
  std::vector<probe::IdUse> uses = uses_outside(tree);
  const auto until = std::chrono::steady_clock::now() + kSoonGone;
  while (!uses.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookEvery);
    const std::vector<probe::IdUse> now = uses_outside(tree);
    std::erase_if(uses, [&](const probe::IdUse& use) {
      return std::none_of(now.begin(), now.end(), [&](const probe::IdUse& one) {
        return one.id == use.id && one.process.pid == use.process.pid;
      });
    });
  }
  for (const probe::IdUse& use : uses) {
    found.add(
        options.leave_running ? Grade::warns : Grade::refuses, "pid-taken",
        {use.process.pid, use.process.name, -1,
         "whose " + use.as + " is " + std::to_string(use.id)},
        "another process is in a session or process group of the dump, so no restore gets that pid",
        "End that process before the restore, or start such a process with setsid.");
  }
}

const Member* member_with(const Tree& tree, pid_t pid) {
  const auto at = std::find_if(tree.members.begin(), tree.members.end(),
                               [pid](const Member& member) { return member.process.pid == pid; });
  return at == tree.members.end() ? nullptr : &*at;
}

// CRIU puts a process into its session by starting it below the leader, or as a child of the root below a helper.
// prepare_pstree_ids() in criu/pstree.c: it fails in the restore if there is neither.
void look_at_lost_sessions(const Tree& tree, const Options& /*options*/, Findings& found) {
  for (const Member& member : tree.members) {
    const pid_t session = member.process.session;
    const Member* above = member_with(tree, member.process.parent);
    if (session == member.process.pid || above == nullptr || above == &tree.first() ||
        above->process.session == session) {
      continue;
    }
    while (above != nullptr && above->process.pid != session) {
      above = above == &tree.first() ? nullptr : member_with(tree, above->process.parent);
    }
    if (above != nullptr) continue;
    found.add(Grade::refuses, "session-lost",
              place_of(member, "session " + std::to_string(session)));
  }
}

// As kymod: with --shell-job, CRIU would dump it, but a daemon has no terminal for the restore.
void look_at_terminals(const Tree& tree, const Options& options, Findings& found) {
  if (options.container) return;
  std::vector<pid_t> pids;
  for (const Member& member : tree.members) pids.push_back(member.process.pid);
  const auto terminal = probe::outside_terminal(pids, options.external, tree.proc);
  if (!terminal) return;
  for (const Member& member : tree.members) {
    if (member.process.pid != terminal->pid) continue;
    found.add(Grade::refuses, "tty-external", place_of(member, terminal->path), {},
              "Start the program with kymo run, or with setsid and its input and output redirected "
              "to files.");
  }
}

// CRIU itself restores a process that is the first one of its pid namespace. kymod does not.
void look_at_pid_namespace(const Tree& tree, const Options& options, Findings& found) {
  if (!tree.has_own(Kind::pid)) return;
  const long id = innermost(tree.first().status, "NSpid");
  const Place place = place_of(
      tree.first(), "pid " + std::to_string(id) + " in " + tree.first().namespaces.of(Kind::pid));
  if (id > 1) {
    found.add(Grade::refuses, "pidns-init", place);
  } else if (!options.container) {
    found.add(Grade::refuses, "pid-taken", place,
              "the process has a pid namespace of its own, and kymod could not restore it",
              "Run it in a container (kymo run runc, podman), or without unshare --pid.");
  }
}

// CRIU restores as the root of the user namespace. The kernel lets that one mount /proc, as a restore does, only in a pid
// namespace of its own.
void look_at_user_namespace(const Tree& tree, const Options& options, Findings& found) {
  if (!tree.has_own(Kind::user)) return;
  if (options.container && options.loses_user_namespace && !options.leave_running) {
    found.add(Grade::refuses, "userns-denied",
              place_of(tree.first(), tree.first().namespaces.of(Kind::user)),
              "the container has a user namespace, and its runtime could not restore it");
  }
  if (options.container || tree.has_own(Kind::pid)) return;
  found.add(Grade::refuses, "procfs-restore",
            place_of(tree.first(), tree.first().namespaces.of(Kind::user)),
            "the process has a user namespace of its own, and CRIU could not restore it",
            "Run it in a container (kymo run runc, podman), or without unshare --user.");
}

// CRIU dumps nested mount and network namespaces only.
void look_at_nested_namespaces(const Tree& tree, const Options& /*options*/, Findings& found) {
  constexpr std::array kNotNested{Kind::pid,  Kind::user, Kind::ipc,
                                  Kind::time, Kind::uts,  Kind::cgroup};
  for (const Member& member : tree.members) {
    for (const Kind kind : kNotNested) {
      const std::string& name = member.namespaces.of(kind);
      const std::string& outer = tree.first().namespaces.of(kind);
      if (name.empty() || outer.empty() || name == outer || name == tree.own.of(kind)) continue;
      found.add(Grade::refuses, "nested-ns", place_of(member, name),
                "a process has a namespace of its own inside of the tree");
    }
    const std::string& next = member.time_of_children;
    if (next.empty() || next == member.namespaces.of(Kind::time)) continue;
    found.add(Grade::refuses, "nested-ns", place_of(member, next),
              "a process has made a time namespace for its children (unshare)");
  }
}

// CRIU gives to each thread what the first thread of the process has, and says nothing.
void look_at_unshared_threads(const Tree& tree, const Options& /*options*/, Findings& found) {
  const std::string remedy =
      "Let the program do this in a process of its own, or end that thread before the dump.";
  for (const Member& member : tree.members) {
    for (const Thread& thread : member.threads) {
      const std::string where = "thread " + std::to_string(thread.tid);
      if (!thread.own_namespace.empty()) {
        found.add(Grade::refuses, "nested-ns",
                  place_of(member, where + ", " + thread.own_namespace),
                  "a thread has a namespace of its own, and would get that of its process", remedy);
      }
      if (thread.own_files) {
        found.add(Grade::refuses, "fd-unsupported", place_of(member, where),
                  "a thread has open files of its own, which would be lost", remedy);
      }
      if (thread.own_folders) {
        found.add(
            Grade::warns, "mnt-chroot", place_of(member, where),
            "a thread has a root, working directory and umask of its own, and would get those "
            "of its process",
            remedy);
      }
    }
  }
}

// CRIU saves each policy, and refuses some of them only in the restore.
void look_at_policies(const Tree& tree, const Options& /*options*/, Findings& found) {
  constexpr std::array kRestored{SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE};
  for (const Member& member : tree.members) {
    for (const Thread& thread : member.threads) {
      const int policy = thread.policy & ~SCHED_RESET_ON_FORK;
      if (std::find(kRestored.begin(), kRestored.end(), policy) != kRestored.end()) continue;
      found.add(
          Grade::refuses, "sched-policy",
          place_of(member, "thread " + std::to_string(thread.tid) + ", policy " +
                               (policy == kDeadline ? "SCHED_DEADLINE" : std::to_string(policy))));
    }
  }
}

// CRIU opens files in the process itself, up to this many at once (tried with CRIU 4.2.1).
constexpr rlim_t kOpenedInTarget = 4;

// CRIU reads the limits of each process. This is what the kernel permits of another one to this program.
void look_at_limits(const Tree& tree, const Options& options, Findings& found) {
  if (tree.proc != "/proc") return;
  for (const Member& member : tree.members) {
    rlimit limit{};
    if (member.process.shows_nothing()) continue;
    if (::prlimit(member.process.pid, RLIMIT_NOFILE, nullptr, &limit) != 0) {
      if (errno == EPERM && ::geteuid() == 0) {
        // The runtime of a container may have more rights.
        found.add(options.container ? Grade::warns : Grade::refuses, "limits-unseen",
                  place_of(member, "uid " + std::to_string(member.process.uid)));
      }
      continue;
    }
    const auto open = static_cast<rlim_t>(std::count_if(
        member.files.begin(), member.files.end(),
        [&](const OpenFile& file) { return static_cast<rlim_t>(file.fd) < limit.rlim_cur; }));
    if (limit.rlim_cur - open >= kOpenedInTarget) continue;
    found.add(Grade::refuses, "nofile-low",
              place_of(member, "may open " + std::to_string(limit.rlim_cur) + ", has " +
                                   std::to_string(open)));
  }
}

// CRIU switches the filter off meanwhile, which the kernel refuses to a program with a filter.
void look_at_seccomp(const Tree& tree, const Options& /*options*/, Findings& found) {
  const Result<std::string> ours = read_file(tree.proc + "/self/status");
  if (!ours || number_of(*ours, "Seccomp") == 0) return;
  for (const Member& member : tree.members) {
    if (number_of(member.status, "Seccomp") == 0) continue;
    found.add(Grade::warns, "seccomp-suspend", place_of(member),
              "a process has a seccomp filter, and so has this program: if CRIU has one, too, it "
              "may not suspend the other");
  }
}

constexpr std::array kProcessChecks{Check{"tracers", look_at_tracers},
                                    Check{"freezers", look_at_freezers},
                                    Check{"ended main threads", look_at_ended_main_threads},
                                    Check{"sessions", look_at_sessions},
                                    Check{"ids", look_at_ids},
                                    Check{"lost sessions", look_at_lost_sessions},
                                    Check{"terminals", look_at_terminals},
                                    Check{"pid namespace", look_at_pid_namespace},
                                    Check{"user namespace", look_at_user_namespace},
                                    Check{"nested namespaces", look_at_nested_namespaces},
                                    Check{"unshared threads", look_at_unshared_threads},
                                    Check{"policies", look_at_policies},
                                    Check{"limits", look_at_limits},
                                    Check{"seccomp", look_at_seccomp}};

}  // namespace

std::span<const Check> process_checks() {
  return kProcessChecks;
}

}  // namespace kymo::preflight
