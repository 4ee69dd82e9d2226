#pragma once

#include <string>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/runtimes/table.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The API's value for a runtime: the one whose name is the runtime's name in capitals.
v1::Runtime to_api(runtime::Kind kind);
// The runtime for a value of the API. RUNTIME_UNSPECIFIED means a plain process.
// Errors: invalid_argument: this version does not know the value.
Result<runtime::Kind> kind_of(v1::Runtime runtime);
// The runtime for the name in a checkpoint's record. An empty name means a plain process.
// Errors: unimplemented: this version does not know the name; the message contains it.
Result<runtime::Kind> kind_named(const std::string& name);

}  // namespace kymo::daemon
