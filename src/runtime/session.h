#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kymo::runtime {

// A command is started as the leader of a session of its own, in which all that it starts stays,
// whoever their parents are by now.

// The processes that run in one of these sessions; zombies do not run.
std::vector<pid_t> members_of(const std::vector<pid_t>& sessions);

// Stops whatever runs in them, and lets it go on.
std::vector<pid_t> stop_sessions(const std::vector<pid_t>& sessions);
void continue_all(const std::vector<pid_t>& stopped);

// Ends whatever runs in them. All are stopped first, so that none starts another meanwhile.
void kill_sessions(const std::vector<pid_t>& sessions);

// The sessions of the processes that were started with this variable, "NAME=VALUE", in their
// environment; other users' processes are not seen.
std::vector<pid_t> sessions_with(const std::string& variable);

}  // namespace kymo::runtime
