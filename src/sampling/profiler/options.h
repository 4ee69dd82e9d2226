#pragma once

#include "kymo/profiler.h"
#include "kymo/result.h"

namespace kymo {

// Errors: invalid_argument with the option, its value and what is allowed.
Result<void> check_options(const ProfilerOptions& options);

}  // namespace kymo
