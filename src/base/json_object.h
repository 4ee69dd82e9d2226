#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// JSON that others wrote: whatever it holds, nothing here throws. A member of the wrong type is as
// good as missing.
namespace kymo {

// The object that `text` is; null where it is none, or nests deeper than any of ours. (Ours nest
// four deep; a hostile file would nest until printing it overflows the stack.)
nlohmann::json parse_object(std::string_view text);

inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) {
    return kNothing;
  }
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

inline std::string text_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline std::uint64_t number_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

}  // namespace kymo
