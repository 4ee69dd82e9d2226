#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kymo::runtime {

// kymod starts each command as the leader of a new session. The processes that the command starts
// stay in that session even if their parent ends, unless they create a session themselves.

// Returns the processes that run in one of these sessions, without zombies.
std::vector<pid_t> members_of(const std::vector<pid_t>& sessions);

// Stops all processes in these sessions and returns them. continue_all() lets them run again.
std::vector<pid_t> stop_sessions(const std::vector<pid_t>& sessions);
void continue_all(const std::vector<pid_t>& stopped);

// Kills all processes in these sessions. Stops them first, so that none can start another one.
void kill_sessions(const std::vector<pid_t>& sessions);

// Returns the sessions of the processes that were started with this variable, "NAME=VALUE", in
// their environment. It cannot see the processes of other users.
std::vector<pid_t> sessions_with(const std::string& variable);

}  // namespace kymo::runtime
