#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "criu/image_codec.h"
#include "criu/pstree.h"
#include "criu/stats.h"
#include "kymo/result.h"
#include "runtime/criu_choice.h"

namespace kymo::runtime {

// A process as the kernel means it: a pid alone may have been given to another since.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks =
      0;  // field 22 of /proc/PID/stat, clock ticks since boot; 0: not known
};

// A container that a runtime has, or a plain process.
struct Container {
  std::string id;     // by which its runtime knows it for good; empty for a process
  std::string name;   // by which its user knows it; of a process its program's
  ProcessId process;  // its first process, seen from outside
  std::string bundle;
  std::vector<std::string> command;
  bool frozen = false;
  bool read_only_root = false;
};

// What is told to CRIU besides; the same for a dump and its restore. A runtime refuses what it has
// no way to pass on.
struct CheckpointOptions {
  bool tcp_established = false;        // with its open TCP connections
  bool shell_job = false;              // part of the session of somebody's terminal
  bool file_locks = false;             // with its file locks; processes always are
  std::vector<std::string> external;   // CRIU's --external: "mnt[PATH]:NAME" at a dump
  int log_level = 0;                   // of CRIU's log; 0: the one by which phases are found
  bool external_unix_sockets = false;  // with what is connected to datagram sockets of others
  std::string root;  // of a restore: the mount point that becomes the root of the mount namespace
};

// One round before a dump: the memory that was written since the round before, or all of it.
struct PreDumpRound {
  std::uint64_t duration_ns = 0;
  std::uint64_t criu_time_ns = 0;
  std::uint64_t pages_written = 0;  // shared memory's with them
  std::uint32_t frozen_time_us = 0;
  std::uint64_t image_bytes = 0;
};

// What a caller is told while a dump or restore runs. Calls come from the thread that runs the
// request and from threads that watch CRIU's log and the images directory; both must be quick.
struct Observer {
  // CRIU passed this point ("pre-dump", "network-lock", ...). A process' CRIU waits until it
  // returns; of a container it is read in CRIU's log, within a millisecond.
  std::function<void(std::string_view notification)> notified;
  // Bytes that lie in the images directory by now; never decreasing, the last call is exact.
  std::function<void(std::uint64_t total)> image_bytes;
  // Where more is known than that: bytes of images so far before compression, those of them that
  // are memory pages, and whether every byte was seen (`exact`) or looked at from without. At a
  // restore, what was read of them.
  std::function<void(std::uint64_t bytes, std::uint64_t page_bytes, bool exact)> moved{};
  // A round before the dump has ended.
  std::function<void(const PreDumpRound& round)> pre_dumped{};
};

struct RunSpec {
  std::vector<std::string> command;      // command[0] is looked up on PATH
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // working directory
  std::string stdout_path;  // opened O_WRONLY|O_APPEND|O_CREAT: CRIU restores such a file
  std::string stderr_path;  // whatever its size has become
  // Of a container, whose command is its bundle's (runc), or follows `podman run -d --name NAME`.
  std::string container{};
  std::string bundle{};
  std::string work_dir{};  // of runc: its log goes here
};

struct DumpSpec {
  ProcessId process;
  std::string images_dir;  // must exist and be empty
  std::string work_dir;    // must exist; log and statistics go here
  bool leave_running = false;
  std::string container{};  // its id; empty: a plain process
  CheckpointOptions options{};
  // The images are durable before it ends or runs on; of plain processes.
  bool sync = false;
  // Set: the images go through us, and are kept so.
  std::optional<criu::Encoding> stream{};
  // When it must have ended, by monotonic_ns(): what has not is ended then, and the process runs
  // on. 0: only the runtime's own limit holds.
  std::uint64_t deadline_ns = 0;
  // At most so many rounds of pre-dump before; of plain processes.
  std::uint32_t pre_dumps = 0;
  // Somebody had frozen the container before, and it is to stay so.
  bool frozen = false;
  std::optional<CriuProgram> criu{};  // none: the one that the runtime was made with
  // Ends it as the deadline does (Code::cancelled). Null: nobody can.
  const Cancellation* cancel = nullptr;
};

struct DumpOutcome {
  // None where criu left no readable statistics; then a warning says why.
  std::optional<criu::DumpStats> stats;
  std::uint64_t image_bytes = 0;      // sum of the sizes of the files in images_dir
  std::uint64_t criu_time_ns = 0;     // life of the criu process; of a container's by its log
  std::uint64_t command_time_ns = 0;  // life of the runc or podman that was started
  std::uint64_t runtime_time_ns = 0;  // runc's, of podman's runc as podman tells it
  // How often criu waited for the disk to have its own files: a cold start. None: not known.
  std::optional<std::uint64_t> criu_major_faults;
  std::vector<PreDumpRound> pre_dumps;  // their bytes are in image_bytes, their time in no other
  // What went wrong once the images were whole; one line each.
  std::vector<std::string> warnings;
};

struct RestoreSpec {
  std::string images_dir;
  std::string work_dir;
  std::string container{};  // its id; empty: a plain process
  std::string bundle{};     // of runc
  // The processes in the images, the root first; none: they are read when they are needed.
  std::optional<std::vector<criu::ImageProcess>> tree{};
  CheckpointOptions options{};
  std::optional<CriuProgram> criu{};  // as of a dump
  // Ends it, and what it has restored so far (Code::cancelled). Null: nobody can.
  const Cancellation* cancel = nullptr;
};

struct RestoreOutcome {
  ProcessId process;
  std::optional<criu::RestoreStats> stats;  // as of a dump
  std::uint64_t criu_time_ns = 0;           // as of a dump, and what follows
  std::uint64_t command_time_ns = 0;
  std::uint64_t runtime_time_ns = 0;
  std::optional<std::uint64_t> criu_major_faults;
  std::vector<std::string> warnings;  // what went wrong once the process ran again
};

struct FreezeSpec {
  ProcessId process;
  std::string container;  // its id; empty: a plain process, with all that descends from it
};

// The OCI runtime by which a container runtime starts CRIU.
struct OciRuntime {
  std::string name;  // "runc", "crun"
  std::string path;  // empty: it is the container runtime itself
  // The PATH on which it looks for criu, where kymod does not set that.
  std::string search_path{};
};

// What can be run, dumped, restored and frozen.
// Threads: any; each call runs a criu, runc or podman of its own. Errors say what was tried, on
// what, and what to do; after a failed dump the process or container runs on.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Result<ProcessId> run(const RunSpec& spec) = 0;
  // The container of that name or id, which runs or is frozen; of plain processes that of a pid.
  virtual Result<Container> find(const std::string& name) = 0;
  // The first process of the container of this very id, where it runs now; none for processes,
  // which have no ids. Cheap: it starts nothing.
  virtual std::optional<ProcessId> process_of(const std::string& id) = 0;
  // The criu that it starts, whatever a spec says; none: that of the spec. Errors: it cannot be
  // seen, or does not start.
  virtual Result<std::optional<CriuProgram>> fixed_criu() { return std::optional<CriuProgram>(); }
  // Whether a dump or restore of this spec can be tried; touches nothing, and needs no directory of
  // a dump. Errors: what the caller has to change; a later failure is the system's.
  virtual Result<void> may_dump(const DumpSpec& spec) = 0;
  virtual Result<void> may_restore(const RestoreSpec& spec) = 0;
  virtual Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) = 0;
  // Brings a dump of this spec to an end whose caller was killed: what runs of it is ended, unless
  // it is past the point of return, what it left frozen goes on, and what it put elsewhere is
  // brought to where it belongs. The images stay as they are.
  virtual Result<void> settle_dump(const DumpSpec& spec) = 0;
  virtual Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) = 0;
  // Stop it where it is, and let it go on; each returns a line about how it was done. Errors:
  // failed_precondition: it is so already; then, and after any other error, it is as it was.
  virtual Result<std::string> freeze(const FreezeSpec& spec) = 0;
  virtual Result<std::string> unfreeze(const FreezeSpec& spec) = 0;
};

}  // namespace kymo::runtime
