#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kymo::daemon {

// What callers accept of all trailers together; a longer status is lost whole.
inline constexpr std::size_t kAcceptedTrailerBytes = 8192;
// What of it an error's text may take.
inline constexpr std::size_t kMostMessageBytes = 4096;

// What a status's message takes among the trailers: gRPC writes what is not plain as %XX.
std::size_t sent_bytes(std::string_view message);

// At most so many bytes, cut where a character of UTF-8 begins.
std::string cut_text(const std::string& text, std::size_t most);

// The text, or as much of it as kMostMessageBytes take, with an end that says that it is cut.
std::string message_to_send(std::string text);

}  // namespace kymo::daemon
