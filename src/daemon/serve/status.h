#pragma once

#include <grpcpp/support/status.h>

#include "kymo/result.h"

namespace kymo::daemon {

// The error as a gRPC status. A message that is too long to be sent is cut, and its end says so.
// The status has details (a google.rpc.Status with the code only), so that callers can tell it from
// a status that gRPC makes itself, for example for a lost connection: that one has no details.
grpc::Status status_of(const Error& error);

}  // namespace kymo::daemon
