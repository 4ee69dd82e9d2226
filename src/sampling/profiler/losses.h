#pragma once

#include <string>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

// The outcome of a recording: that of closing its sink, then the ticks that could not be kept
// (`refusal`: why the sink refused rows), then the callbacks that have thrown.
Result<void> with_losses(Result<void> closed, const ProfilerStats& stats,
                         const std::string& refusal, const std::vector<CallbackError>& errors);

}  // namespace kymo
