#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::daemon {

// The name of the trailer that carries the v1::Failure of a dump or restore that failed. The ending
// -bin makes it a binary trailer in gRPC.
inline constexpr std::string_view kFailureTrailer = "failure-bin";

// The most bytes of that trailer.
inline constexpr std::size_t kMaxFailureBytes = 1200;

// The explanation of the error as the value of that trailer. Long texts are cut.
std::string failure_trailer(const Error& error);

}  // namespace kymo::daemon
