#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/preflight/oci_spec.h"
#include "kymo/result.h"

// What would make the dump of a process tree fail, found out without stopping it.
namespace kymo::preflight {

// The options of the dump or restore that is planned.
struct Options {
  bool tcp_established = false;
  bool shell_job = false;
  bool skip_in_flight = false;
  bool link_remap = false;
  bool allow_uprobes = false;
  bool external_unix_sockets = false;
  bool file_locks = false;  // matters only for a container: kymod saves those of a process anyway
  std::uint64_t ghost_limit_bytes = std::uint64_t{1} << 20U;  // CRIU's default
  std::vector<std::string> external{};                        // as for CRIU's --external
  // A restore takes programs and libraries of the same size for the same (--file-validation filesize), and files with
  // other permissions (skip-file-rwx-check).
  bool by_size = false;
  bool any_permissions = false;
  // A container runtime calls CRIU. It gives terminals back, and freezes the processes itself.
  bool container = false;
  // Its runtime keeps what a restore reads where the root of a user namespace may not read it.
  bool loses_user_namespace = false;
  // The processes run on after the dump, and may change their files.
  bool leave_running = false;
  // What the config.json of a container names of this machine, and its restore needs.
  std::vector<HostName> names{};
};

// How much look_at() may read before it gives up. 0: as much as there is.
struct Limits {
  std::chrono::milliseconds time{0};
  std::size_t bytes = 0;  // that it holds in memory, about
};

enum class Grade : std::uint8_t {
  refuses,  // the dump fails unless this changes
  warns,    // the dump may fail: it depends on what /proc does not show, or on the next moment
};

// Where something was found.
struct Place {
  pid_t pid = 0;        // 0: it is no process
  std::string process;  // its name
  int fd = -1;          // -1: it is no file descriptor
  std::string object;   // a path, connection, device or mapping; may be empty
};

// Something that makes the dump fail, and every place where it was found.
struct Finding {
  Grade grade = Grade::warns;
  std::string failure;  // the id in the catalogue (docs/errors.md) of the failure that follows
  std::string what;
  std::string remedy;
  std::size_t count = 0;      // of places
  std::vector<Place> places;  // the first ones, at most kMaxPlaces
};

inline constexpr std::size_t kMaxPlaces = 100;
// What follows is no failure: the restored process lacks something that it had.
inline constexpr std::string_view kNotRestored = "not-restored";
// The failure of the one finding that is no matter of the processes: only kymod knows where their images go.
inline constexpr std::string_view kNoRoom = "disk-full";

struct Report {
  pid_t pid = 0;
  std::size_t processes = 0;
  std::uint64_t memory_bytes = 0;   // that the dump writes, about (probe/memory_to_dump.h)
  std::uint64_t deleted_bytes = 0;  // of deleted files that are still in use, which it writes, too
  std::uint64_t shared_memory_bytes = 0;  // of the files in /dev/shm, which podman writes, too
  std::vector<Finding> findings;          // those that refuse first
  std::vector<pid_t> ended;               // processes that ended while they were looked at
  std::vector<std::string> not_seen;  // what could not be looked at, of which processes, and why

  [[nodiscard]] std::size_t refusing() const;
  // What the dump will write, about. Room, forecast and progress are judged by it.
  [[nodiscard]] std::uint64_t bytes_to_write() const {
    return memory_bytes + deleted_bytes + shared_memory_bytes;
  }
};

// Looks at the process and its descendants. It only reads: no process is stopped or changed, and no
// file of theirs is opened. This program itself is left out if it is one of them.
//
// Threads: any.
// Errors:  not_found if there is no such process, or if it ended meanwhile; invalid_argument if the
//          pid is no process that can be dumped; resource_exhausted if a limit was reached. Parts
//          that cannot be looked at are no error; they are listed in Report::not_seen.
// Cost:    some milliseconds: a few system calls for each thread and file descriptor, and one read
//          of each list of mappings and of the socket tables that the sockets are in. It looks at
//          most at kMaxFiles descriptors and kMaxThreads threads of each process, and lists in
//          not_seen if there were more.
Result<Report> look_at(pid_t pid, const Options& options = {}, const Limits& limits = {},
                       const std::string& proc = "/proc");

inline constexpr std::size_t kMaxFiles = 4096;
inline constexpr std::size_t kMaxThreads = 1024;
// Of what the kernel says of one open file. An epoll set may watch any number of files.
inline constexpr std::size_t kMaxFileInfo = std::size_t{1} << 20U;

// Where something was found, on one line: the first places only. Names and paths of the processes
// may hold control characters.
std::string places_of(const Finding& finding);
// The finding on one line: "WHAT (PLACES). REMEDY (failure ID)".
std::string line_of(const Finding& finding);
nlohmann::json to_json(const Report& report);

}  // namespace kymo::preflight
