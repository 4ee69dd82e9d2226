#pragma once

#include <string>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"
#include "kymo/sink.h"
#include "recorder/sampling/ring/ring_memory.h"

namespace kymo {

// The outcome of a recording: that of closing its sink, then the ticks that could not be kept
// (`refusal`: why the sink refused rows), then the callbacks that have thrown.
Result<void> with_losses(Result<void> closed, const ProfilerStats& stats,
                         const std::string& refusal, const std::vector<CallbackError>& errors);

// Removes the ring's file, as everything in it has been offered to the sink. But if closing the sink
// has left a file that is not finished, the ring stays, because a recovery needs it. Returns
// `closed`, which then says so.
Result<void> end_ring(RingMemory& ring, Result<void> closed, const Sink& sink);

}  // namespace kymo
