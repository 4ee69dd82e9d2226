#pragma once

#include "api/kymo/v1/findings.pb.h"
#include "checkpoint/preflight/preflight.h"

namespace kymo::preflight {

// The report as the API has it, and back.
v1::CheckResponse to_api(const Report& report);
Report report_of(const v1::CheckResponse& message);

}  // namespace kymo::preflight
