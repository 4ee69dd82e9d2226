#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// JSON that others wrote: whatever it holds, nothing here throws. A member of the wrong type is as
// good as missing.
namespace kymo {

// The object that `text` is; null where parse_json() finds none.
nlohmann::json parse_object(std::string_view text);

const nlohmann::json& member(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);
std::uint64_t number_of(const nlohmann::json& object, const char* key);

}  // namespace kymo
