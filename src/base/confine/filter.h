#pragma once

#include "kymo/result.h"

namespace kymo::confine {

// Leaves this process only the system calls, and of these only the arguments, that reading needs.
// All others return EPERM. Needs no_new_privs.
// Errors: unimplemented: the kernel has no seccomp; the system's.
Result<void> filter_calls(bool threads, bool receives_files);

// Makes the filter now, so that the children of this process need not make it.
void prepare_filter();

}  // namespace kymo::confine
