#pragma once

#include <google/protobuf/message.h>

#include <string_view>

#include "kymo/result.h"

namespace kymo::daemon {

// Replaces what is not UTF-8 in the texts of a message by U+FFFD, since gRPC sends no message with
// such a text. Names and command lines of processes may hold any bytes.
// Cost: a look at every character.
void make_valid_utf8(google::protobuf::Message& message);

// Checks that no text of a request has a NUL byte. The system's calls would take only what is before it: a name or a
// command that was checked would not be the one that is used.
// Errors: invalid_argument, with the name of the field.
Result<void> check_texts(std::string_view verb, const google::protobuf::Message& request);

}  // namespace kymo::daemon
