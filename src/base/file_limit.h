#pragma once

// The limit for the open files of this process (RLIMIT_NOFILE). Its soft limit is often 1,024,
// because programs that use select(2) break above that. This program does not use it.
namespace kymo {

// Lets this process open as many files as the system allows it. spawn() gives the former soft limit
// back to the programs that it starts.
// Threads: to be called before any other thread is started.
void raise_file_limit();

// Gives the former soft limit back to this process. Does nothing if it was not raised.
// Threads: can be called in a child between fork(2) and exec(2).
void give_back_file_limit();

}  // namespace kymo
