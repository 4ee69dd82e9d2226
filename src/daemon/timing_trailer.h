#pragma once

#include <string>
#include <string_view>

#include "kymo/scope.h"

namespace kymo::daemon {

// The name of the trailer that carries a request's v1::TimingTree; gRPC takes the ending to mean
// binary.
inline constexpr std::string_view kTimingTrailer = "profiling-bin";

// Callers that are not told otherwise accept 8 KiB of trailers, the status's message among them.
inline constexpr std::size_t kMostTrailerBytes = 4096;

// The tree as that trailer's value, without as many of its innermost scopes as it takes to fit.
std::string timing_trailer(const ScopeTree& tree);

}  // namespace kymo::daemon
