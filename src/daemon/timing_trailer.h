#pragma once

#include <string>
#include <string_view>

#include "kymo/scope.h"

namespace kymo::daemon {

// The name of the trailer that carries a request's v1::TimingTree; gRPC takes the ending to mean
// binary.
inline constexpr std::string_view kTimingTrailer = "profiling-bin";

inline constexpr std::size_t kMostTrailerBytes = 4096;

// The tree as that trailer's value, without as many of its innermost scopes as it takes to fit
// beside the status's message: callers that are not told otherwise accept 8 KiB of both. Empty
// where not even the request itself fits: the message goes first.
std::string timing_trailer(const ScopeTree& tree, std::string_view message);

}  // namespace kymo::daemon
