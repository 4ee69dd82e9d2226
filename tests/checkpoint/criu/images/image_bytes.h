#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/images/images.h"

namespace kymo::criu {

// Builds an image file by hand, byte by byte, without the code that is tested.
class ImageBytes {
 public:
  ImageBytes& word(std::uint32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes_.push_back(static_cast<std::byte>((value >> shift) & 0xffU));
    }
    return *this;
  }
  // Adds a message: its size, then these bytes.
  ImageBytes& message(const std::vector<std::uint8_t>& body) {
    word(static_cast<std::uint32_t>(body.size()));
    return raw(body);
  }
  ImageBytes& raw(const std::vector<std::uint8_t>& body) {
    for (const std::uint8_t byte : body) {
      bytes_.push_back(static_cast<std::byte>(byte));
    }
    return *this;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::vector<std::byte> bytes_;
};

using Body = std::vector<std::uint8_t>;  // of a message
using Faults = std::vector<std::string>;

// An image of this kind without messages.
inline ImageBytes head_of(const ImageKind& kind) {
  return ImageBytes().word(kind.family).word(kind.magic);
}

}  // namespace kymo::criu
