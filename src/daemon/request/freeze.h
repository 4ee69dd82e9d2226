#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Freezes a process, a job or a container, or lets it go on.
// Errors: failed_precondition: it is in that state already, or it is being dumped.
Result<v1::FreezeResponse> set_frozen(const Parts& parts, const v1::Target& asked, bool frozen);

}  // namespace kymo::daemon
