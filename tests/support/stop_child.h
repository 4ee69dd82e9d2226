#pragma once

#include <sys/types.h>

namespace kymo::test {

// Stops all threads of a child with SIGSTOP, and waits until they have stopped. With kill(2) alone,
// some threads would still run for a moment. Returns false if the child has ended.
bool stop_child(pid_t child);

}  // namespace kymo::test
