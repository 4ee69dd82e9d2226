#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// The largest request that is read: a file's name and a few bytes around it.
inline constexpr std::size_t kLargestStreamerRequest = 4096;

// Whether CRIU may name an image so: a plain file's name, in no other folder and not hidden.
// Errors: invalid_argument, naming it.
Result<void> check_image_name(std::string_view name);

// Reads CRIU's requests off the socket of an image streamer: each a u32 size in the machine's order
// and a protobuf message with the name of a file. Never takes a byte of what follows a request,
// which may be a descriptor's.
//
// Threads: one at a time.
class StreamerRequests {
 public:
  // How many bytes are to be taken next, never 0.
  [[nodiscard]] std::size_t wanted() const;
  // Whether the stream may end here: between two requests.
  [[nodiscard]] bool between() const { return bytes_.empty() && !size_known_; }
  // At most wanted() bytes; the name once a request is whole. Errors: data_loss: it is no request;
  // those of check_image_name. After an error the stream is of no use.
  Result<std::optional<std::string>> take(std::span<const std::byte> bytes);

 private:
  std::vector<std::byte> bytes_;
  std::size_t size_ = 0;
  bool size_known_ = false;
};

// A request, and the answer at a restore, as they go over the socket.
std::string streamer_request(std::string_view name);
std::string streamer_reply(bool exists);

}  // namespace kymo::criu
