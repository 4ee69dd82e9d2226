#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// Functions to read JSON from other programs. None of them throws, whatever the JSON contains. A
// member of the wrong type counts as missing.
namespace kymo {

// Parses `text`. Returns null if parse_json() finds no object in it.
nlohmann::json parse_object(std::string_view text);

// If the member is missing, these return null, an empty text and 0.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);
std::uint64_t number_of(const nlohmann::json& object, const char* key);

}  // namespace kymo
