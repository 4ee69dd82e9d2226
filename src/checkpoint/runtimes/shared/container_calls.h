#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/pre_dump.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// A dump or restore by a container runtime: how to start it, and where it leaves its files.
struct ContainerCall {
  std::string runtime;  // "runc", "podman": the name of the scope, and the first word of errors
  Command command;
  // If set, it is called instead of starting `command` (containerd and Docker have an API). It
  // obeys the timeout and the cancellation of `limits`, which is `command`.
  std::function<Result<CommandOutcome>(const Command& limits)> run{};
  std::string tried;  // "could not dump container web"
  std::string images_dir;
  bool writes_images = false;  // set by dump_container()
  // CRIU's log and statistics in the work directory. No statistics: its runtime does not keep them.
  std::string log_path;
  std::string stats_path;
  // The names of the container's cgroups (container_processes.h). For a restore.
  std::vector<std::string> cgroups{};
  // Where CRIU writes its log while it runs. Empty: to log_path.
  std::string growing_log;
  // Only for a dump with rounds of pre-dump: makes the command of one round.
  std::function<Command(const PreDumpPlace& place)> round{};
  // Changes the command of the dump so that it uses the last round as its parent.
  std::function<Result<void>(const std::string& last, Command& dump)> after_rounds{};
  // If set, moves files that the command has left elsewhere into the work directory. `outcome` is
  // null if the command did not start or was ended early. Like `reason`, it must own what it uses: it may outlive the
  // call if a disk does not answer.
  std::function<void(const CommandOutcome* outcome)> collect{};
  // What the reason of a failed restore says if somebody else has made, or restores, a container of that name: then
  // nothing of it is this restore's, and nothing is removed. The error is already_exists. Empty: not known.
  std::string says_taken{};
  // Returns the reason that a failed command gave.
  std::function<std::string(const CommandOutcome& outcome)> reason;
};

// Checks whether the requested rounds of pre-dump can be made with the criu in this folder. Empty:
// the criu on PATH.
Result<void> check_rounds(const DumpSpec& spec, const std::string& criu_folder,
                          std::chrono::milliseconds timeout);

// Makes the requested rounds of pre-dump, then runs the command that dumps the container. Watches
// CRIU's log and the images as they grow. Then reads the statistics and the phases, or, if the dump
// failed, makes sure that the container runs on.
Result<DumpOutcome> dump_container(const DumpSpec& spec, ContainerCall call,
                                   const Observer& observer);

// The same for a restore. The caller must fill in `process` of the outcome. If it fails, no process of the container
// is left.
Result<RestoreOutcome> restore_container(const RestoreSpec& spec, ContainerCall call,
                                         const Observer& observer);

// Runs a container by a program such as docker, whose `run` takes --detach, --cidfile and --name. If that fails after the
// program has made the container, the container is removed.
// `program`: the program and its flags; its words are followed by "run", or by `remove` and the container's id.
// `reason`:  why it failed, from what it printed.
// `find`:    Runtime::find().
Result<ProcessId> run_by_program(const Command& program, const std::vector<std::string>& remove,
                                 const RunSpec& spec,
                                 const std::function<std::string(const std::string&)>& reason,
                                 const std::function<Result<Container>(const std::string&)>& find);

// Freezes or unfreezes a container with `call`, which asks its runtime to do it. `shown` names the
// call in the returned line. If freezing fails half-way, the container is unfrozen again. A runtime that
// gave up too early, as runc does on a busy machine, is asked again.
Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const std::function<Result<void>()>& call);
// The same with a command.
Result<std::string> freeze_container(const FreezeSpec& spec, bool frozen, const std::string& shown,
                                     const Command& command);

}  // namespace kymo::runtime
