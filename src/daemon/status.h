#pragma once

#include <grpcpp/support/status.h>

#include "kymo/result.h"

namespace kymo::daemon {

// The error as callers get it: its text in one piece with an end that says so where it is too long
// to be sent. The details (google.rpc.Status, its code alone) tell it from a status of gRPC's own,
// which speaks of a lost connection and has none.
grpc::Status status_of(const Error& error);

}  // namespace kymo::daemon
