#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// Closes all descriptors of this process, except for these and standard output and error. Standard
// input becomes /dev/null if it is not one of them.
//
// Threads: the only one of the process. The objects of the program that own descriptors still have
//          their numbers, so do not let them close anything.
// Errors:  the system's.
Result<void> close_all_but(std::vector<int> kept);
// Closes all descriptors but these, which are sorted. Allocates no memory, where the kernel has close_range(2).
Result<void> close_others(const std::vector<int>& kept);

// Opens /dev/null for standard input, output and error where they are closed. To be called when a
// program starts: otherwise a connection or file that it opens later takes their place, and its
// readers keep that as their output.
void open_standard_descriptors();

// The descriptor of a file, folder or pipe that a path such as /dev/fd/3 or /dev/stdin names. -1 if
// the path names none, or a socket or something else that cannot be opened by its path.
int descriptor_named(const std::string& path);

}  // namespace kymo
