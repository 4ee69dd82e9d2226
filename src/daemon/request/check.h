#pragma once

#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/preflight/preflight.h"
#include "daemon/request/parts.h"
#include "daemon/request/target.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Looks at what a dump is about to stop, and refuses a dump that is sure to fail
// (docs/preflight.md), unless it is forced. Returns what was seen: the sizes, and what may make the dump or its restore
// fail. If the target cannot be looked at, or not in time, nothing is refused, and only its memory is known.
//
// Threads: any; blocks for at most a second.
// Errors:  failed_precondition: the first finding that refuses, its remedy, and --force.
// Cost:    as preflight::look_at(). It holds at most 64 MiB.
Result<preflight::Report> refuse_if_sure_to_fail(const Target& target,
                                                 const v1::DumpRequest& request);

// The error of a request that would fail by `first`, of the findings of `report`.
Error refusal(const std::string& tried, const preflight::Report& report,
              const preflight::Finding& first);

// The error of a dump that failed, with the places (files, sockets) that the check before the dump
// has found for it, because CRIU's log often names only the process.
Error with_places(Error error, const std::vector<preflight::Finding>& seen_before);
// The error of a request, with what was seen before the request and may have caused the error.
Error with_possible_causes(Error error, const std::vector<std::string>& seen_before);

// Lists what would make the dump of a process or container fail.
// Errors: those of find_target() and of preflight::look_at(); deadline_exceeded: the target's file
//         systems do not answer.
Result<v1::CheckResponse> check_target(const Parts& parts, const v1::CheckRequest& request);

}  // namespace kymo::daemon
