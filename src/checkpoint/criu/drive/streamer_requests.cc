#include "checkpoint/criu/drive/streamer_requests.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>

#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/streamer.pb.h"

namespace kymo::criu {
namespace {

// Leaves room for the suffix of a compressed image.
constexpr std::size_t kMaxName = NAME_MAX - 8;

std::string shown(std::string_view name) {
  std::string text(name.substr(0, 64));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string framed(const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(body.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame + body;
}

}  // namespace

Result<void> check_image_name(std::string_view name) {
  const bool plain =
      !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  if (plain) return {};
  return Error{Code::invalid_argument,
               "image stream: '" + shown(name) + "' is not a name that an image can have"};
}

std::size_t StreamerRequests::wanted() const {
  return (size_known_ ? size_ : sizeof(std::uint32_t)) - bytes_.size();
}

Result<std::optional<std::string>> StreamerRequests::take(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (wanted() > 0) return std::optional<std::string>();
  if (!size_known_) {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes_.data(), sizeof size);
    if (size == 0 || size > kMaxStreamerRequest) {
      return Error{Code::data_loss, "image stream: a request of " + std::to_string(size) +
                                        " bytes cannot come from CRIU"};
    }
    size_ = size;
    size_known_ = true;
    bytes_.clear();
    return std::optional<std::string>();
  }
  wire::StreamerRequest request;
  const bool understood = parse_message(std::span<const std::byte>(bytes_), request);
  size_known_ = false;
  bytes_.clear();
  if (!understood) {
    return Error{Code::data_loss, "image stream: a request that cannot be understood"};
  }
  if (Result<void> ok = check_image_name(request.filename()); !ok) return ok.error();
  return std::optional<std::string>(request.filename());
}

std::string streamer_request(std::string_view name) {
  wire::StreamerRequest request;
  request.set_filename(std::string(name));
  return framed(request);
}

std::string streamer_reply(bool exists) {
  wire::StreamerReply reply;
  reply.set_exists(exists);
  return framed(reply);
}

}  // namespace kymo::criu
