#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "report/history.h"

namespace kymo::report {

// A run as the API gives it.
HistoryRun run_of(const v1::HistoryRun& run);

}  // namespace kymo::report
