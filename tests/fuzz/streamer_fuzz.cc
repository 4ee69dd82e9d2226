#include <algorithm>

#include "checkpoint/criu/drive/streamer_requests.h"
#include "checkpoint/criu/images/image_codec.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

// The bytes are what CRIU sends to an image streamer.
void hear(std::span<const std::byte> rest) {
  criu::StreamerRequests requests;
  while (!rest.empty()) {
    const std::size_t wanted = requests.wanted();
    require(wanted > 0 && wanted <= criu::kMaxStreamerRequest, "what is wanted is bounded");
    const std::size_t n = std::min(wanted, rest.size());
    const auto name = requests.take(rest.first(n));
    rest = rest.subspan(n);
    if (!name) {
      require(!name.error().message.empty(), "an error says something");
      require(name.error().message.find('\n') == std::string::npos, "an error is one line");
      return;
    }
    if (!*name) continue;
    require(criu::check_image_name(**name).ok(), "a name that is given is a plain one");
    require((*name)->find('/') == std::string::npos && (*name)->front() != '.',
            "no name leads out of the folder");
    require(requests.between(), "a name ends a request");
  }
}

// The bytes are a compressed image.
void unpack(std::span<const std::byte> packed) {
  constexpr std::size_t kMax = std::size_t{1} << 20;
  for (const auto compression : {criu::Compression::zstd, criu::Compression::lz4}) {
    const auto image = criu::decode_all(compression, packed, kMax, "fuzz");
    require(image.ok() ? image->size() <= kMax : !image.error().message.empty(),
            "an image is bounded, or an error says something");
  }
}

}  // namespace

void streamer(Bytes data) {
  hear(std::as_bytes(data));
  unpack(std::as_bytes(data));
}

}  // namespace kymo::fuzz
