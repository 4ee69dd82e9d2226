#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// How the recorder does, as the API and the page show it.
v1::Recorder recorder_status(const Recorder& recorder);

// Does what was asked and says how the recorder does then; `by` stands in the log. Errors: those of
// Recorder::control(), and of allowed_path() for the file.
Result<v1::Recorder> control_recorder(const Parts& parts, const v1::ControlRecorderRequest& request,
                                      const char* by);

}  // namespace kymo::daemon
