#pragma once

#include <string>
#include <utility>

#include "kymo/result.h"

namespace kymo {

// The error of a sink that is opened a second time. `what` was tried.
inline Error sink_in_use(std::string what) {
  return Error{
      Code::failed_precondition,
      std::move(what) + ": this sink is in use by another profiler; make a sink for each profiler",
      0};
}

}  // namespace kymo
