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
inline constexpr std::size_t kMaxFailureBytes = 1440;

// The explanation of the error as the value of that trailer. A text that is too long is cut between
// two words and ends with "…": in the catalogue there is none.
std::string failure_trailer(const Error& error);

}  // namespace kymo::daemon
