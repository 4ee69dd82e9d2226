#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mappings.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/preflight.h"
#include "kymo/result.h"

namespace kymo::preflight {

// The kinds of namespaces, as in /proc/PID/ns.
enum class Kind : std::uint8_t { cgroup, ipc, mnt, net, pid, time, user, uts };
inline constexpr std::array<std::string_view, 8> kKinds{"cgroup", "ipc",  "mnt",  "net",
                                                        "pid",    "time", "user", "uts"};

// "net:[4026531840]" for each kind. Empty: it could not be read.
struct Namespaces {
  std::array<std::string, kKinds.size()> names;
  [[nodiscard]] const std::string& of(Kind kind) const {
    return names[static_cast<std::size_t>(kind)];
  }
};

// An open file descriptor.
struct OpenFile {
  int fd = -1;
  std::string link;         // what /proc/PID/fd/N points to
  std::string info;         // /proc/PID/fdinfo/N; empty for sockets
  std::string protocol;     // of a socket, as in /proc/net/protocols
  std::uint64_t inode = 0;  // of a socket
  // Of a file with a path. A mode of 0: unknown.
  unsigned mode = 0;
  unsigned major = 0;  // of a device
  unsigned minor = 0;
  unsigned links = 0;
  std::uint64_t disk_bytes = 0;
  std::array<std::uint64_t, 3> id{};  // its device (major, minor) and inode

  [[nodiscard]] bool has_path() const { return link.starts_with('/'); }
  [[nodiscard]] bool deleted() const { return link.ends_with(" (deleted)"); }
};

// A mapping of a file whose name is gone.
struct DeletedMapping {
  Mapping mapping;
  OpenFile file;  // without a descriptor
};

struct Thread {
  pid_t tid = 0;
  pid_t tracer = 0;
  int policy = 0;  // of the scheduler, as in sched_getscheduler(2)
  // What it does not share with the first thread of its process.
  std::string own_namespace{};  // "net:[4026532200]"; empty: none
  bool own_files = false;       // a table of descriptors
  bool own_folders = false;     // root, working directory and umask
  std::string cpus{};           // on which it may run, as in status
};

struct Member {
  probe::Process process;
  std::string status;  // of /proc/PID/status
  std::string root;    // the link /proc/PID/root
  std::vector<Thread> threads;
  std::vector<OpenFile> files;
  std::vector<Mapping> mappings;
  std::vector<DeletedMapping> deleted;  // of a file one for each adjacent run
  Namespaces namespaces;
  std::string time_of_children{};  // the namespace that its next child gets, "time:[4026532178]"
};

// Something that could not be looked at, for the same reason in all these processes.
struct NotSeen {
  std::string what;
  std::string why;
  std::vector<std::string> processes;  // "12 python3"
};

// What was seen of a process tree.
struct Tree {
  std::string proc;             // "/proc", or what replaces it in tests
  std::vector<Member> members;  // the root of the tree first
  Namespaces own;               // those of this program, in which CRIU is assumed to run
  std::vector<pid_t> ended;     // they ended while they were looked at
  std::vector<NotSeen> not_seen;

  // Notes that something of a process could not be looked at.
  void miss(std::string what, std::string why, const Member& member);

  [[nodiscard]] const Member& first() const { return members.front(); }
  [[nodiscard]] std::string folder_of(const Member& member) const {
    return proc + "/" + std::to_string(member.process.pid);
  }
  // Whether a process or thread of the tree has this id.
  [[nodiscard]] bool has(pid_t id) const;
  // Whether the tree has processes now that it had not when it was read. Then what seems to be
  // outside of it may be inside. Cost: reads the list of children of each thread again.
  [[nodiscard]] bool has_grown() const;
  // Whether this is a process that runs outside of the tree, now as well. Cost: as has_grown().
  [[nodiscard]] bool is_outside(pid_t pid) const;
  // The inodes of the sockets that the members have open now.
  [[nodiscard]] std::set<std::uint64_t> sockets_now() const;
  // Whether the tree has a namespace of this kind that is not that of this program.
  [[nodiscard]] bool has_own(Kind kind) const;
};

// Errors: as look_at().
Result<Tree> read_tree(pid_t pid, const Limits& limits, const std::string& proc);

// "7f0000000000-7f0000001000", as in /proc/PID/maps.
std::string range_of(const Mapping& mapping);

}  // namespace kymo::preflight
