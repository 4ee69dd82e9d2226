#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "checkpoint/criu/drive/options.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/drive/streamed_file.h"
#include "checkpoint/criu/images/image_codec.h"
#include "checkpoint/criu/images/pstree.h"
#include "checkpoint/preflight/oci_spec.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "kymo/result.h"

namespace kymo::criu {
class HeldImages;
}

namespace kymo::runtime {

// Identifies a process. The pid alone is not enough, because the kernel may have given it to a
// later process.
struct ProcessId {
  pid_t pid = 0;
  // Field 22 of /proc/PID/stat, in clock ticks since boot. 0: unknown.
  std::uint64_t start_ticks = 0;
};

// A container of a runtime, or a plain process.
struct Container {
  // The permanent id that the runtime uses. Empty for a process.
  std::string id;
  // The name that the user gave. For a process: the name of its program.
  std::string name;
  // The first process of the container, with its pid outside of the container.
  ProcessId process;
  std::string bundle;  // the folder of its config.json. Empty: not known
  std::vector<std::string> command;
  bool frozen = false;
  bool read_only_root = false;
};

// A runtime refuses an option that it cannot pass on to CRIU (option_checks.h).
using CheckpointOptions = criu::Options;

// One round of pre-dump. The first round writes all memory, each later one the memory that has
// changed since the round before.
struct PreDumpRound {
  std::uint64_t duration_ns = 0;
  std::uint64_t criu_time_ns = 0;
  std::uint64_t pages_written = 0;  // including pages of shared memory
  std::uint32_t frozen_time_us = 0;
  std::uint64_t image_bytes = 0;
};

// CRIU's log once CRIU has ended, also after a failure.
struct LogSeen {
  criu::LogPhases phases;  // empty if the log cannot be read
  // On the clock of monotonic_ns(). 0: unknown.
  std::uint64_t began_ns = 0;
  std::uint64_t criu_ended_ns = 0;  // for a container: the end of the runtime's command
};

// Functions that report the progress of a dump or restore. They are called on the thread that runs
// the request and on threads that watch CRIU's log and the images directory. They must be quick.
struct Observer {
  // CRIU has reached this notification ("pre-dump", "network-lock", ...). For a plain process CRIU
  // waits until the function returns. For a container the notification is read from CRIU's log, at
  // most about a millisecond later.
  std::function<void(std::string_view notification)> notified;
  // CRIU has got kymod's answer to it. Only for a plain process.
  std::function<void()> answered{};
  // kymod begins to do this while CRIU waits for its answer: the name of a phase. Empty: it has done it.
  std::function<void(std::string_view what)> working{};
  // Bytes in the images directory so far. The number never decreases. The last call is exact.
  std::function<void(std::uint64_t total)> image_bytes;
  // Bytes of images written so far, before compression, and how many of them are memory pages. At a
  // restore: the bytes read. `exact`: every byte passed through kymod. Otherwise the numbers are
  // measured from outside.
  std::function<void(std::uint64_t bytes, std::uint64_t page_bytes, bool exact)> moved{};
  // What kymod's thread did for a stream, also of one that failed. The last call says how long it ran.
  std::function<void(const criu::Streamed& so_far)> streamed{};
  // A round of pre-dump has ended.
  std::function<void(const PreDumpRound& round)> pre_dumped{};
  // The runtime has made the container stand still before it calls CRIU, and it stands still until the dump is over.
  // CLOCK_MONOTONIC.
  std::function<void(std::uint64_t from_ns, std::uint64_t to_ns)> paused{};
  // CRIU has ended, and its log was read.
  std::function<void(LogSeen log)> logged{};
};

struct RunSpec {
  std::vector<std::string> command;      // command[0] is looked up on PATH
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // working directory
  // Opened with O_WRONLY|O_APPEND|O_CREAT. CRIU restores such a file even if its size has changed.
  std::string stdout_path;
  std::string stderr_path;
  // Only for a container: its id or name. A container of runc runs the command of its bundle, and
  // `command` is empty. For podman `command` has the words that follow `podman run -d --name NAME`,
  // for containerd the image, the command and its arguments, for docker the words that follow
  // `docker run --detach --name NAME`.
  std::string container{};
  std::string bundle{};
  std::string work_dir{};  // for files of the runtime, such as runc's log
};

struct DumpSpec {
  ProcessId process;
  std::string images_dir;  // must exist and be empty
  std::string work_dir;    // must exist; log and statistics go here
  bool leave_running = false;
  std::string container{};  // its id; empty: a plain process
  CheckpointOptions options{};
  // Only for plain processes: the images are on their disk before the process ends or runs on.
  bool sync = false;
  // If set, CRIU writes its log and statistics into this directory first, which in_scratch() makes, on
  // a memory file system. They are moved to `work_dir` afterwards. So CRIU never waits for the disk
  // of `work_dir` (scratch.h). A runtime sees the scratch directory as `work_dir`.
  std::string scratch_dir{};
  // Set by in_scratch() if `work_dir` is now the scratch directory: what it was.
  std::string final_work_dir{};
  // If set, the images are written into this directory first, which in_scratch() makes, on a memory
  // file system, and copied to `images_dir` afterwards (memory_images.h). A runtime sees it as
  // `images_dir`.
  std::string memory_images{};
  // If set, the images pass through kymod, which stores them with this encoding.
  std::optional<criu::Encoding> stream{};
  // On the clock of monotonic_ns(). If the dump is not done at this time, it is ended, and the
  // process or container runs on. 0: no deadline, only the timeout of the runtime.
  std::uint64_t deadline_ns = 0;
  // The largest number of rounds of pre-dump before the dump.
  std::uint32_t pre_dumps = 0;
  // The container was frozen before the request, and it must stay frozen.
  bool frozen = false;
  std::optional<CriuProgram> criu{};  // not set: the one that the runtime was made with
  // Ends the dump as the deadline does, with Code::cancelled. Null: the dump cannot be cancelled.
  const Cancellation* cancel = nullptr;
  std::string container_name{};  // for messages; empty: they have the id
  // The folder `images_dir`, which remembers what was written into it. Null: then it is not noticed if another program
  // changes the images.
  std::shared_ptr<criu::HeldImages> held{};
  // A container may have processes that its dump loses (companions.h).
  bool force = false;
  // If set, it is called with the folder of the images when all are written, while the processes stand
  // still. If it returns an error, the dump fails with it and they run on. `left`: until the deadline.
  std::function<Result<void>(const std::string& images_dir, std::chrono::milliseconds left)>
      prove{};
};

// What is known of a dump and of a restore. `Stats` are CRIU's statistics.
template <class Stats>
struct Outcome {
  // Empty if CRIU left no readable statistics. A warning then says why.
  std::optional<Stats> stats;
  // How long the CRIU process lived. For a container: the time from the first line of CRIU's log to
  // the last.
  std::uint64_t criu_time_ns = 0;
  // How long the command of the container runtime lived, or its call took.
  std::uint64_t command_time_ns = 0;
  // The time of the OCI runtime, as podman reports it. For the other container runtimes it is
  // command_time_ns.
  std::uint64_t runtime_time_ns = 0;
  // Only of podman: its own time, as it reports it.
  std::uint64_t podman_time_ns = 0;
  // How often CRIU had to wait for the disk to read its own program (a cold start). Empty if
  // unknown.
  std::optional<std::uint64_t> criu_major_faults;
  // What went wrong after the images were complete, or after the process ran again: one line each.
  std::vector<std::string> warnings;
};

struct DumpOutcome : Outcome<criu::DumpStats> {
  // The size of all images on disk, with those of the pre-dump rounds, and of podman's archive of /dev/shm.
  std::uint64_t image_bytes = 0;
  // The rounds of pre-dump. Their times are not included in the times above.
  std::vector<PreDumpRound> pre_dumps;
  // The runtime has failed, and the process was not seen to run afterwards. What its images are worth is not known.
  struct Failure {
    Error error;
    bool ended = false;             // the process has; otherwise it is held, or it cannot be seen
    std::string why_unsure;         // "process 12 is held by ..."; empty: it has ended
    std::vector<ProcessId> left{};  // what may be left of its processes
  };
  std::optional<Failure> failure;
  // Why the files of a container's /dev/shm are in no archive. Not set: they are, or the container has none of its own.
  std::optional<Error> lost_part;
};

struct RestoreSpec {
  std::string images_dir;
  std::string work_dir;
  std::string container{};  // its id; empty: a plain process
  std::string bundle{};     // only for runc
  // The processes in the images, the root first. If it is not set, they are read from the images.
  std::optional<std::vector<criu::ImageProcess>> tree{};
  CheckpointOptions options{};
  std::optional<CriuProgram> criu{};  // not set: the one that the runtime was made with
  // Ends the restore and what it has restored so far, with Code::cancelled. Null: the restore
  // cannot be cancelled.
  const Cancellation* cancel = nullptr;
  std::string container_name{};  // for messages; empty: they have the id
  // Of a container: what config.json named of this machine at the dump. Empty: not known.
  std::vector<preflight::HostName> names{};
};

// A restore that is taken back before anything runs.
struct RehearsalSpec : RestoreSpec {
  std::vector<std::string> changed{};       // as criu::Needs::changed
  bool own_mounts = false;                  // as criu::Needs::own_mounts
  std::chrono::milliseconds time_limit{0};  // 0: only that of the runtime
};

struct RestoreOutcome : Outcome<criu::RestoreStats> {
  ProcessId process;
};

struct FreezeSpec {
  ProcessId process;
  std::string container;         // its id; empty: a plain process with all its descendants
  std::string container_name{};  // for messages; empty: they have the id
};

// What messages call the container of a spec.
template <class Spec>
const std::string& name_of_container(const Spec& spec) {
  return spec.container_name.empty() ? spec.container : spec.container_name;
}

// The OCI runtime with which a container runtime starts CRIU.
struct OciRuntime {
  std::string name;  // "runc", "crun"
  std::string path;  // empty: the container runtime is itself the OCI runtime
  // The PATH on which it looks for criu. Empty if kymod sets that PATH.
  std::string search_path{};
};

// Runs, dumps, restores and freezes processes or containers.
//
// Threads: any. Each call starts its own criu, runc or podman, or makes its own call to containerd or
//          Docker.
// Errors:  the message says what was tried, on what, and what to do. After a failed dump the
//          process or container runs on.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Result<ProcessId> run(const RunSpec& spec) = 0;
  // Finds the container with this name or id, which must run or be frozen. For plain processes
  // `name` is a pid.
  virtual Result<Container> find(const std::string& name) = 0;
  // Returns the first process of the container with exactly this id. Returns nothing if the
  // container does not run, and for plain processes, which have no ids.
  // Cost: low; it starts no program (podman starts one at the first call).
  // Errors: it is not known, because the runtime does not answer.
  virtual Result<std::optional<ProcessId>> process_of(const std::string& id) = 0;
  // Returns the criu that the runtime starts regardless of the spec. Returns nothing if it starts
  // the one of the spec.
  // Errors: this criu is not found or does not start.
  virtual Result<std::optional<CriuProgram>> fixed_criu() { return std::optional<CriuProgram>(); }
  // Check whether a dump or restore with this spec can be tried. They change nothing, and the
  // directories of a dump need not exist yet.
  // Errors: something that the caller has to change. If the check succeeds and the dump or restore
  //         fails, the cause is the system and not the request.
  virtual Result<void> may_dump(const DumpSpec& spec) = 0;
  virtual Result<void> may_restore(const RestoreSpec& spec) = 0;
  // Errors: the process runs on, and the images that were written are worth nothing. They stay.
  virtual Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) = 0;
  // Cleans up after a dump with this spec whose caller was killed. It ends the programs of the dump
  // that still run, or waits for them if the dump can no longer be undone. It unfreezes what the
  // dump left frozen, and moves files that the dump left elsewhere to their places. It does not
  // touch the images.
  virtual Result<void> settle_dump(const DumpSpec& spec) = 0;
  virtual Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) = 0;
  // Really restores, up to the moment before anything runs, and takes it back. Nothing of it is left, and
  // whatever runs with the same pids or name is not touched.
  virtual Result<void> rehearse(const RehearsalSpec& spec) = 0;
  // Cleans up after a restore of a container with this spec whose caller was killed. Removes what is left of it,
  // so that the next restore finds nothing in its way. Returns false if the restore still goes on.
  // `began_unix_ns`: when it began.
  virtual Result<bool> settle_restore(const RestoreSpec& /*spec*/, std::int64_t /*began_unix_ns*/) {
    return true;
  }
  // Freeze the process or container, and unfreeze it. Each returns one line that says how.
  // Errors: failed_precondition if it is frozen, or unfrozen, already. After any error it is in the
  //         state in which it was before.
  virtual Result<std::string> freeze(const FreezeSpec& spec) = 0;
  virtual Result<std::string> unfreeze(const FreezeSpec& spec) = 0;
};

}  // namespace kymo::runtime
