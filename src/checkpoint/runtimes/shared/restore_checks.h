#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/images/needs.h"
#include "checkpoint/preflight/preflight.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "kymo/result.h"

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
  // Whether programs and libraries are compared by their size alone. Not set: as CRIU's configuration files say.
  std::optional<bool> by_size;
  // What config.json named at the dump, without what the runtime makes anew. The bundle says it for now.
  std::vector<preflight::HostName> names;
};

nlohmann::json to_json(const PlannedRestore& planned);
// The same from JSON that anybody may have written.
PlannedRestore planned_restore_of(const nlohmann::json& object);

// Errors: failed_precondition: there are such mounts (criu::Needs::misled_mounts). The finding on one line.
Result<void> check_mounts(const PlannedRestore& planned);

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
