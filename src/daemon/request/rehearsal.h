#pragma once

#include <cstdint>

#include "checkpoint/runtimes/shared/criu_choice.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/request/parts.h"
#include "daemon/state/foreign.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Whether this criu can rehearse the restore of a checkpoint of this kind, and can be proved.
// Errors: failed_precondition.
Result<void> may_rehearse(runtime::Kind kind, const runtime::CriuProgram& criu);

// Whether there is memory for a rehearsal of processes with so much memory.
// Errors: resource_exhausted.
Result<void> check_rehearsal_memory(std::uint64_t bytes);

// Rehearses the restore of images: it is really made, beside whatever runs, and taken back before
// anything of it runs (runtime::Runtime::rehearse()). Leaves nothing.
// `memory_bytes`: of the processes, about. `seen`: what was seen in the images.
// Errors: those of the restore; resource_exhausted: there is too little memory for it.
Result<void> rehearse(const Parts& parts, runtime::Kind kind, runtime::RehearsalSpec spec,
                      const ImagesSeen& seen, std::uint64_t memory_bytes);

}  // namespace kymo::daemon
