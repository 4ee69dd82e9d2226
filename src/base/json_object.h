#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// JSON that others wrote: whatever it holds, nothing here throws. A member of the wrong type is as
// good as missing.
namespace kymo {

// The object that `text` is; null where it is none, or nests deeper than any of ours. (Ours nest
// four deep; a hostile file would nest until printing it overflows the stack.)
nlohmann::json parse_object(std::string_view text);

const nlohmann::json& member(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);
std::uint64_t number_of(const nlohmann::json& object, const char* key);

}  // namespace kymo
