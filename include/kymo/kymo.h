#pragma once

// What most programs need: counters, gauges and histograms, a profiler that records them, the files
// that it writes, and scopes. The other headers are for special uses; each says which.

#include "kymo/gauge.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/scope.h"
#include "kymo/sink.h"
#include "kymo/timed_scope.h"
