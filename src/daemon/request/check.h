#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "daemon/request/target.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Looks at what a dump is about to stop, and refuses a dump that is sure to fail
// (docs/preflight.md). If the target cannot be looked at, or not in time, nothing is refused.
//
// Threads: any; blocks for at most a second.
// Errors:  failed_precondition: the first finding that refuses, its remedy, and --force.
// Cost:    as preflight::look_at(). It holds at most 64 MiB.
Result<void> refuse_if_sure_to_fail(const Target& target, const v1::CheckpointOptions& options);

// Lists what would make the dump of a process or container fail.
// Errors: those of find_target() and of preflight::look_at(); deadline_exceeded: the target's file
//         systems do not answer.
Result<v1::CheckResponse> check_target(const Parts& parts, const v1::CheckRequest& request);

}  // namespace kymo::daemon
