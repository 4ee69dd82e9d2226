#pragma once

#include <sys/types.h>

namespace kymo::test {

// Stops all threads of a child with SIGSTOP, and waits until they are stopped: after kill(2) alone
// some still run for a moment, and answer. False: it has ended.
bool stop_child(pid_t child);

}  // namespace kymo::test
