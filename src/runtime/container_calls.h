#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kymo/result.h"
#include "runtime/command.h"
#include "runtime/pre_dump.h"
#include "runtime/process_checks.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// What a dump or restore by somebody else's command leaves, and where.
struct ContainerCall {
  std::string runtime;  // "runc", "podman": the scope's name and the error's first word
  Command command;
  // Does what the command would, within its limits, where that is no program; none: it is one.
  std::function<Result<CommandOutcome>(const Command& limits)> run{};
  std::string tried;  // "could not dump container web"
  std::string images_dir;
  std::string log_path;  // CRIU's, and its statistics, in the work directory
  std::string stats_path;
  std::string growing_log;  // where CRIU writes its log, where that is elsewhere
  // Of a dump with rounds of pre-dump: the command of one, and what the dump's own is told of the
  // last of them.
  std::function<Command(const PreDumpPlace& place)> round{};
  std::function<Result<void>(const std::string& last, Command& dump)> after_rounds{};
  // Brings what the command has left elsewhere into the work directory; none: there is nothing.
  std::function<void(const CommandOutcome* outcome)> collect{};
  // The command's own reason, where it failed.
  std::function<std::string(const CommandOutcome& outcome)> reason;
};

// Whether the rounds of pre-dump that are asked for can be made with the criu in this folder
// (empty: the one on PATH).
Result<void> check_rounds(const DumpSpec& spec, const std::string& criu_folder,
                          std::chrono::milliseconds timeout);

// Runs the command that dumps a container, watching CRIU's log and the images as they grow, and
// sees to what it leaves: statistics and phases; after a failure, that the container runs on.
// Before it the rounds of pre-dump that are asked for.
Result<DumpOutcome> dump_container(const DumpSpec& spec, ContainerCall call,
                                   const Observer& observer);

// The same for a restore; `process` of the outcome is left to the caller.
Result<RestoreOutcome> restore_container(const RestoreSpec& spec, ContainerCall call,
                                         const Observer& observer);

// Freezes a container by `call`, its runtime's own means, or lets it go on; `shown` is how that is
// called. Where it fails half-way the container is let go.
Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const std::function<Result<void>()>& call);
// The same by a command.
Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const Command& command);

}  // namespace kymo::runtime
