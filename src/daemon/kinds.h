#pragma once

#include <string>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"
#include "runtimes/table.h"

namespace kymo::daemon {

// A runtime in the API: the enum's value of its name in capitals.
v1::Runtime to_api(runtime::Kind kind);
// Unspecified: a process. Errors: invalid_argument: a number that this version does not know.
Result<runtime::Kind> kind_of(v1::Runtime runtime);
// As a checkpoint's record or a job's file names it; empty: a process. Errors: unimplemented,
// naming it.
Result<runtime::Kind> kind_named(const std::string& name);

}  // namespace kymo::daemon
