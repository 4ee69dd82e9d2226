#pragma once

#include "base/clock.h"
#include "kymo/profiler.h"
#include "sampling/pacer.h"

namespace kymo {

// What kymod and `kymo record` do so that a busy machine does not hold their collector up. Where it
// only sleeps it gets the lowest real-time priority, and loses that again if it uses more of a CPU
// than sleeping and sampling should; a collector that spins never gets one. Where there is none, a
// nice value. libkymo leaves both to its user (ProfilerOptions).
inline void run_ahead(ProfilerOptions* options, bool realtime) {
  constexpr double kMaxShare = 0.25;
  constexpr int kNice = -10;
  if (realtime && Pacer::only_sleeps(to_nanos(options->interval), options->pace)) {
    options->realtime_priority = 1;
    options->realtime_max_share = kMaxShare;
  }
  options->nice = kNice;
}

}  // namespace kymo
