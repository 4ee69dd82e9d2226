#include "daemon/serve/status.h"

#include "daemon/serve/trailer_text.h"

namespace kymo::daemon {

grpc::Status status_of(const Error& error) {
  constexpr char kCodeField = 0x08;  // the protobuf tag of field 1 as a varint
  const std::string details{kCodeField, static_cast<char>(error.code)};
  return {static_cast<grpc::StatusCode>(error.code), message_to_send(error.message), details};
}

}  // namespace kymo::daemon
