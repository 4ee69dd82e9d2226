#pragma once

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Finds which of the CRIUs in the configuration (--criu, --criu-fallback) start and pass their own
// check. Logs what is wrong with the other one. `options` are those of each call. If a program is
// not named criu, makes a link with that name in a folder of the state directory.
// Errors: neither works: the error of --criu.
Result<runtime::CriuChoice> find_crius(const Config& config, const criu::ClientOptions& options);

}  // namespace kymo::daemon
