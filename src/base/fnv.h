#pragma once

#include <cstdint>
#include <string_view>

namespace kymo {

// FNV-1a of 64 bits (RFC draft "The FNV Non-Cryptographic Hash Algorithm"): the same in every version and on every
// machine. Somebody who chooses the text can also choose the hash.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace kymo
