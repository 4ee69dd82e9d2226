#pragma once

#include "criu/client.h"
#include "daemon/config.h"
#include "kymo/result.h"
#include "runtime/criu_choice.h"

namespace kymo::daemon {

// The CRIUs that the configuration names, those that start and pass their own check; what is wrong
// with one is logged. `options`: of each call. Makes a folder in the state directory for one whose
// program is not called criu. Errors: none works: the first one's.
Result<runtime::CriuChoice> find_crius(const Config& config, const criu::ClientOptions& options);

}  // namespace kymo::daemon
