#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kymo::daemon {

// The most bytes that callers accept for all trailers together. If there are more, the whole status
// is lost.
inline constexpr std::size_t kAcceptedTrailerBytes = 8192;
// The part of it that an error's message may take.
inline constexpr std::size_t kMaxMessageBytes = 4096;

// The bytes that a status's message takes in the trailers. gRPC writes '%' and all that is not
// printable ASCII as %XX.
std::size_t sent_bytes(std::string_view message);

// The first bytes of the text, at most `most`, cut at the start of a UTF-8 character.
std::string cut_text(const std::string& text, std::size_t most);

// The text; if it takes more than kMaxMessageBytes, it is cut, and its end says so.
std::string message_to_send(std::string text);

}  // namespace kymo::daemon
