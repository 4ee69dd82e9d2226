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
inline constexpr std::size_t kMaxStreamerRequest = 4096;

// Checks that an image can have this name: a plain file name, without a folder and not hidden.
// Errors: invalid_argument, with the name.
Result<void> check_image_name(std::string_view name);

// Reads the requests that CRIU sends to the socket of an image streamer. A request is a u32 size in
// the machine's byte order and a protobuf message with the name of a file. The class never takes a
// byte after the end of a request, because that byte may carry a file descriptor.
//
// Threads: one at a time.
class StreamerRequests {
 public:
  // How many bytes take() needs next, never 0.
  [[nodiscard]] std::size_t wanted() const;
  // Whether no request has begun. Only then the stream may end.
  [[nodiscard]] bool between() const { return bytes_.empty() && !size_known_; }
  // Takes at most wanted() bytes. Returns the name if the request is complete, else nothing.
  // Errors: data_loss if it is not a request; those of check_image_name(). After an error, do not
  //         use the stream any more.
  Result<std::optional<std::string>> take(std::span<const std::byte> bytes);

 private:
  std::vector<std::byte> bytes_;
  std::size_t size_ = 0;
  bool size_known_ = false;
};

// A request, and the reply of a restore, as they are sent over the socket.
std::string streamer_request(std::string_view name);
std::string streamer_reply(bool exists);

}  // namespace kymo::criu
