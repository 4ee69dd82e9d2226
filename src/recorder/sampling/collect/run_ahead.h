#pragma once

#include "base/clock.h"
#include "kymo/profiler.h"
#include "recorder/sampling/collect/pacer.h"

namespace kymo {

// Sets the options with which kymod and `kymo record` keep their collector on time on a busy
// machine. A collector that only sleeps gets the lowest real-time priority. It loses this priority
// again if it uses more of a CPU than sleeping and sampling should. A collector that spins never
// gets one. Without a real-time priority, a nice value applies. libkymo leaves both to its user
// (ProfilerOptions).
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
