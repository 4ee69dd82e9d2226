#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// Ends a dump of a container by a container runtime, for example at a deadline, or if the kymod
// that started it was killed. It ends CRIU first, at an instant at which the container's processes
// do not need it. If the dump can no longer be undone, it waits for CRIU instead. Then it gives the
// runtime time to end by itself, so that the runtime leaves its own records in order. Finally it
// kills what is left. The container may be left frozen.
//
// `log_path`: where CRIU writes its log.
// `tree`:     the container's processes.
// `sessions`: the sessions of the commands.
// Threads: any; blocks for some seconds at most.
void end_container_dump(const std::string& log_path, const std::vector<pid_t>& tree,
                        const std::vector<pid_t>& sessions);

// Returns the variable that the command of a dump has in its environment, so that its processes can
// be found later.
std::string dump_mark(const DumpSpec& spec);

// Ends a restore of a container by a container runtime, at a deadline or a cancellation. It ends
// CRIU and the processes that CRIU has made so far, unless everything is restored already. Then it
// ends the runtime, as for a dump.
//
// `log_path`: where CRIU writes its log.
// `mark`:     the variable that the command has in its environment. Programs that have left the
//             session of the command, such as podman's monitor, are found by it.
// `session`:  the session of the command.
// Returns false if something of it waits for a disk, so that it ends only when the disk answers.
// Threads: any; blocks for some seconds at most.
bool end_container_restore(const std::string& log_path, const std::string& mark, pid_t session);
std::string restore_mark(const RestoreSpec& spec);

// Runtime::settle_dump() for a container. `log_paths`: where CRIU may have written its log.
Result<void> settle_container_dump(const DumpSpec& spec, const std::vector<std::string>& log_paths);

// Unfreezes a container that its runtime has left frozen, unless it was frozen before the dump. If
// that fails, the container stays frozen.
void thaw_container(const DumpSpec& spec);

}  // namespace kymo::runtime
