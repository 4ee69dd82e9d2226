#pragma once

#include <vector>

#include "profiler/stacks/event.h"
#include "profiler/stacks/module.h"
#include "profiler/stacks/processes.h"

namespace kymo::stacks {

// The frames of a stack, innermost first.
struct Unwound {
  std::vector<Frame> frames;
  bool truncated = false;  // the outermost frames are missing
};

// Finds the frames of a program's stack.
//
// Most modules describe how their frames are laid out (call frame information, which compilers
// write for exceptions whether or not they keep frame pointers). The unwinder applies that to the
// copy of the stack. The result is also right in the middle of a function's first instructions,
// where the frame pointer is still that of the caller. Where there is no such description, as in
// code that a program makes at run time, the unwinder follows the frame pointer. For frames beyond
// the end of the copy, it uses the addresses that the kernel has found by frame pointers.
//
// Threads: one.
// Cost:    about a microsecond a frame, once the rows of the modules are known.
Unwound unwind(const Processes::Process& process, const Sample& sample);

}  // namespace kymo::stacks
