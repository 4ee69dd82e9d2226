#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "criu/stats.h"
#include "kymo/result.h"

namespace kymo::runtime {

// A process as the kernel means it: a pid alone may have been given to another since.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks =
      0;  // field 22 of /proc/PID/stat, clock ticks since boot; 0: not known
};

// What a caller is told while a dump or restore runs. Calls come from the thread that runs the
// request
// (`notified`) and from a thread that watches the images directory (`image_bytes`); both must be
// quick.
struct Observer {
  // CRIU passed this point ("pre-dump", "network-lock", ...). CRIU waits until it returns.
  std::function<void(std::string_view notification)> notified;
  // Bytes that lie in the images directory by now; never decreasing, the last call is exact.
  std::function<void(std::uint64_t total)> image_bytes;
  // Where more is known than that: bytes of images so far before compression, those of them that
  // are memory pages, and whether every byte was seen (`exact`) or looked at from without. At a
  // restore, what was read of them.
  std::function<void(std::uint64_t bytes, std::uint64_t page_bytes, bool exact)> moved;
};

struct RunSpec {
  std::vector<std::string> command;      // command[0] is looked up on PATH
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // working directory
  std::string stdout_path;  // opened O_WRONLY|O_APPEND|O_CREAT: CRIU restores such a file
  std::string stderr_path;  // whatever its size has become
};

struct DumpSpec {
  ProcessId process;
  std::string images_dir;  // must exist and be empty
  std::string work_dir;    // must exist; log and statistics go here
  bool leave_running = false;
};

struct DumpOutcome {
  // None where criu left no readable statistics; then a warning says why.
  std::optional<criu::DumpStats> stats;
  std::uint64_t image_bytes = 0;   // sum of the sizes of the files in images_dir
  std::uint64_t criu_time_ns = 0;  // life of the criu process
  // What went wrong once the images were whole; one line each.
  std::vector<std::string> warnings;
};

struct RestoreSpec {
  std::string images_dir;
  std::string work_dir;
};

struct RestoreOutcome {
  ProcessId process;
  std::optional<criu::RestoreStats> stats;  // as of a dump
  std::uint64_t criu_time_ns = 0;
  std::vector<std::string> warnings;  // what went wrong once the process ran again
};

// What can be run, dumped and restored: plain processes now; runc and podman take the same shape.
// Threads: any; each call runs a criu of its own. Errors say what was tried, on what, and what to
// do; after a failed dump the process runs on.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Result<ProcessId> run(const RunSpec& spec) = 0;
  virtual Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) = 0;
  virtual Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) = 0;
};

}  // namespace kymo::runtime
