#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "criu/needs.h"
#include "kymo/result.h"
#include "preflight/preflight.h"
#include "runtime/criu_choice.h"

// What would make a restore on this machine fail, found out without restoring.
namespace kymo::runtime {

// The machine of a dump, as checkpoint.json has it. Empty texts: not known.
struct Machine {
  std::string kernel;     // its release, "6.18.44-amd64"
  std::string cpu;        // the name of the model
  std::string cpu_flags;  // its features, as /proc/cpuinfo has them
};

// This machine.
Machine this_machine();
nlohmann::json to_json(const Machine& machine);
// The machine in JSON that anybody may have written: what is no text there is empty.
Machine machine_of(const nlohmann::json& object);

// What of this machine may make the restore of a dump fail that was made on `there`, one sentence each: an
// older kernel, features that the CPU lacks, and a full /run.
std::vector<std::string> machine_warnings(const Machine& there);

// A checkpoint that somebody plans to restore.
struct PlannedRestore {
  std::vector<pid_t> ids;  // process_checks.h: ids_of(), the root first
  std::size_t processes = 0;
  std::uint64_t image_bytes = 0;
  criu::Needs needs;
  std::vector<std::string> faults;  // of the images: criu::Verified and criu::Compared
  Machine machine;                  // of the dump
  std::string criu_version;         // that made the images; empty: not known
  bool container = false;           // its runtime gives it pids, mounts and a network
  std::string bundle;               // of a container of runc; empty: none
  // What config.json named at the dump, without what the runtime makes anew. The bundle says it for now.
  std::vector<preflight::HostName> names;
};

nlohmann::json to_json(const PlannedRestore& planned);
// The same from JSON that anybody may have written.
PlannedRestore planned_restore_of(const nlohmann::json& object);

// Locks and addresses of the checkpoint, for a process without rights to send to another one.
nlohmann::json to_json(const criu::NeededLock& lock);
std::vector<criu::NeededLock> locks_of(const nlohmann::json& array);
nlohmann::json to_json(const criu::NeededAddress& address);
std::vector<criu::NeededAddress> addresses_of(const nlohmann::json& array);

// Binds each address for a moment. Errors: failed_precondition: one is in use, or this machine does not have it. The
//                                          finding on one line. Sockets that share a port may still be restored.
Result<void> check_addresses(const std::vector<criu::NeededAddress>& addresses);

// Errors: failed_precondition: another process holds one of these locks, for which CRIU would wait
//         without a limit. Names the process and the file.
Result<void> check_locks(const std::vector<criu::NeededLock>& locks);

// Errors: failed_precondition: there are such mounts (criu::Needs::misled_mounts). The finding on one line.
Result<void> check_mounts(const std::vector<std::string>& misled);

// Errors: failed_precondition: one of these files has another size than at the dump, which CRIU refuses. The finding on
//         one line, as preflight::line_of() has it. Files that cannot be seen are left to CRIU.
Result<void> check_sizes(const std::vector<criu::NeededFile>& files);

// Looks at the machine. It reads, and binds each address of the checkpoint for a moment, to see
// whether it is free.
//
// `crius`: those with which it may be restored. Not set: they are not known, which is listed as not
//          seen.
// Threads: any.
// Cost:    a few system calls for each process, file and address.
preflight::Report look_before_restore(const PlannedRestore& planned,
                                      const std::optional<CriuChoice>& crius);

}  // namespace kymo::runtime
