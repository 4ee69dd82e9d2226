#pragma once

#include <google/protobuf/message.h>

namespace kymo::daemon {

// Replaces what is not UTF-8 in the texts of a message by U+FFFD, since gRPC sends no message with
// such a text. Names and command lines of processes may hold any bytes.
// Cost: a look at every character.
void make_valid_utf8(google::protobuf::Message& message);

}  // namespace kymo::daemon
