#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "lens/report/history.h"

namespace kymo::report {

// Converts a run of the API.
HistoryRun run_of(const v1::HistoryRun& run);

}  // namespace kymo::report
