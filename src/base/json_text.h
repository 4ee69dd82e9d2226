#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// JSON to text and back. nlohmann's writer and parser are compiled in json_text.cc alone: every
// file that calls dump() or parse() itself compiles them again, which takes three seconds. Nothing
// here throws.
namespace kymo {

// On one line, or with so many spaces an indent. What is no UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// A string as JSON has it, in quotes.
std::string json_string(std::string_view text);

// Discarded (is_discarded()) where the text is no JSON, or nests deeper than any of ours (a dozen
// levels): a hostile file would nest until printing it overflows the stack.
nlohmann::json parse_json(std::string_view text);

// The text with U+FFFD for what is no UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace kymo
