#pragma once

#include <vector>

#include "stacks/event.h"
#include "stacks/module.h"
#include "stacks/processes.h"

namespace kymo::stacks {

// The frames of a stack, innermost first.
struct Unwound {
  std::vector<Frame> frames;
  bool truncated = false;  // the outermost frames are missing
};

// Finds the frames of a program's stack.
//
// Where a module says how its frames are laid out (call frame information, which compilers write
// for exceptions whether or not they keep frame pointers), the unwinder does what it says, with the
// copy of the stack. That is also right in the middle of a function's first instructions, where the
// frame pointer still is the caller's. Where nothing is said, as in code that a program makes at run
// time, it follows the frame pointer. Beyond the end of the copy it takes what the kernel has found
// by frame pointers.
//
// Threads: one.
// Cost:    about a microsecond a frame, once the rows of the modules are known.
Unwound unwind(const Processes::Process& process, const Sample& sample);

}  // namespace kymo::stacks
