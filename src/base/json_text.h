#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// Converts JSON to text and back. Only json_text.cc compiles nlohmann's writer and parser, which
// takes three seconds. Every other file that calls dump() or parse() would compile them again. No
// function here throws.
namespace kymo {

// Writes JSON on one line, or with `indent` spaces for each level. Bytes that are not valid UTF-8
// become U+FFFD. Control characters, and those that change the direction of the text, are escaped,
// because a terminal would obey them.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// Returns a string as JSON text, in quotes.
std::string json_string(std::string_view text);

// Parses JSON. The result is_discarded() if the text is not JSON or nests deeper than 64 levels.
// Our own files have a dozen levels. A hostile file could nest so deep that printing it would
// overflow the stack.
nlohmann::json parse_json(std::string_view text);

// Returns the text with U+FFFD in place of bytes that are not valid UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace kymo
