#pragma once

namespace kymo {

// Whether a Unicode character can mislead a person who reads it in a terminal: a control character
// (for terminals, U+0080 to U+009F are, too), or one that is invisible or changes the direction of
// the text.
constexpr bool is_harmful(char32_t point) {
  const auto between = [point](char32_t first, char32_t last) {
    return point >= first && point <= last;
  };
  return point < ' ' || between(0x7f, 0x9f) || point == 0x61c || between(0x200b, 0x200f) ||
         between(0x2028, 0x202e) || between(0x2060, 0x206f) || point == 0xfeff;
}

}  // namespace kymo
