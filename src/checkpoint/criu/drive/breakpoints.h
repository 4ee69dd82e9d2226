#pragma once

namespace kymo::criu {

// Whether the CPU stops a process at a hardware breakpoint that a debugger sets. In some virtual
// machines it accepts breakpoints that never stop anything. A CRIU before 4.2 waits for such a
// breakpoint for ever, in each dump and each restore; CRIU 4.2 tries this itself.
//
// Threads: any. Errors: true if it cannot be tried, for example because ptrace is forbidden.
// Cost:    starts a process, which lives for less than a millisecond.
bool hardware_breakpoints_work();

// If hardware breakpoints do not work, tells every CRIU that this process starts from now on to use
// none, by a variable in the environment. Returns whether that was necessary.
//
// Threads: the caller must be the only one, because the environment is changed.
bool avoid_broken_breakpoints();

// The variable that avoid_broken_breakpoints() has set, as NAME=VALUE, for programs that start CRIU
// without this process's environment. Null if it has set none.
const char* without_breakpoints();

}  // namespace kymo::criu
