#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The recorder's status, as the API and the page show it.
v1::Recorder recorder_status(const Recorder& recorder);

// Does what the request asks for, and returns the recorder's status after it. The log names `by`.
// Errors: those of Recorder::control(), and of allowed_path() for the file.
Result<v1::Recorder> control_recorder(const Parts& parts, const v1::ControlRecorderRequest& request,
                                      const char* by);

}  // namespace kymo::daemon
