#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::daemon {

// What callers accept of all trailers together; a longer status is lost whole.
inline constexpr std::size_t kAcceptedTrailerBytes = 8192;
// What of it an error's text may take.
inline constexpr std::size_t kMostMessageBytes = 4096;

// What a status's message takes among the trailers: gRPC writes what is not plain as %XX.
std::size_t sent_bytes(std::string_view message);

// At most so many bytes, cut where a character of UTF-8 begins.
std::string cut_text(const std::string& text, std::size_t most);

// The error as callers get it: its text in one piece with an end that says so where it is too long
// to be sent. The details (google.rpc.Status, its code alone) tell it from a status of gRPC's own,
// which speaks of a lost connection and has none.
grpc::Status status_of(const Error& error);

}  // namespace kymo::daemon
