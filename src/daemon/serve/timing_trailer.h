#pragma once

#include <string>
#include <string_view>

#include "kymo/scope.h"

namespace kymo::daemon {

// The name of the trailer that carries a request's v1::TimingTree. The ending -bin makes it a
// binary trailer in gRPC.
inline constexpr std::string_view kTimingTrailer = "profiling-bin";

inline constexpr std::size_t kMaxTrailerBytes = 4096;

// The tree as the value of that trailer. By default callers accept 8 KiB for the status's message
// and the trailer together. If the tree does not fit, its deepest levels of scopes are left out.
// Empty if not even the scope of the request fits, because the message has priority.
std::string timing_trailer(const ScopeTree& tree, std::string_view message);

}  // namespace kymo::daemon
