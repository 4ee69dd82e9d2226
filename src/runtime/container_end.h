#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace kymo::runtime {

// Ends a dump that a runc or podman makes of a container: at a deadline, or one whose kymod was
// killed. First its CRIU, at an instant at which the container's processes can do without it; one
// that is past the point of return is waited for. Then the runtime is given the time to end by
// itself, so that it leaves its own records in order, and what is left is killed.
//
// `log_path`: where CRIU writes its log; `tree`: the container's processes; `sessions`: those of
// the commands. The container may be left frozen. Threads: any; blocks, seconds at most.
void end_container_dump(const std::string& log_path, const std::vector<pid_t>& tree,
                        const std::vector<pid_t>& sessions);

// What a dump's command has in its environment, so that it is found again.
std::string dump_mark(const DumpSpec& spec);

// Ends a restore that a runc or podman makes of a container, at a deadline or where it was
// cancelled: first its CRIU, unless it has restored everything, and what that has made so far; then
// the runtime, as of a dump. `mark`: what its command has in its environment, by which what left
// the command's `session`, such as podman's monitor, is found. Threads: any; blocks, seconds at
// most.
void end_container_restore(const std::string& log_path, const std::string& mark, pid_t session);
std::string restore_mark(const RestoreSpec& spec);

// Runtime::settle_dump() for a container.
Result<void> settle_container_dump(const DumpSpec& spec, const std::string& log_path);

// A container that its runtime's end has left frozen goes on; what cannot be thawed stays.
void thaw_container(const DumpSpec& spec);

}  // namespace kymo::runtime
