#pragma once

#include "base/http/server.h"
#include "daemon/request/parts.h"

namespace kymo::daemon {

// Adds what the page asks of the stack profiles that are kept (docs/web.md). `parts` must outlive the
// server.
//
// Few requests read the profiles at once, so that they leave threads to all other requests. Each opens
// the file anew, only to read it. What an answer may have is bounded.
void add_profile_paths(http::Server& server, const Parts& parts);

}  // namespace kymo::daemon
