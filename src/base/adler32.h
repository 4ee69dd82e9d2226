#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kymo {

// Computes the checksum Adler-32 (RFC 1950) of text that comes in pieces.
class Adler32 {
 public:
  void add(std::string_view text) noexcept {
    while (!text.empty()) {
      // The sums of 5552 bytes still fit into 32 bits. Then the remainders must be taken.
      const std::size_t count = std::min<std::size_t>(text.size(), 5552);
      for (const char c : text.substr(0, count)) {
        low_ += static_cast<unsigned char>(c);
        high_ += low_;
      }
      low_ %= kModulus;
      high_ %= kModulus;
      text.remove_prefix(count);
    }
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return high_ << 16U | low_; }

 private:
  static constexpr std::uint32_t kModulus = 65521;
  std::uint32_t low_ = 1;
  std::uint32_t high_ = 0;
};

inline std::uint32_t adler32(std::string_view text) noexcept {
  Adler32 sum;
  sum.add(text);
  return sum.value();
}

}  // namespace kymo
