#include "base/json_text.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/harmful_character.h"
#include "base/json_object.h"

namespace kymo {
namespace {

// The bytes with which the harmful characters begin that JSON text may hold as they are.
constexpr std::string_view kSuspects = "\x7f\xc2\xd8\xe2";

// The character at `at` in a text, if it is one to escape; 0 if not. Such a character has at most
// three bytes.
char32_t harmful_at(std::string_view text, std::size_t at, std::size_t& length) {
  const auto bits = [&](std::size_t i, unsigned mask) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) & mask : 0U;
  };
  const unsigned first = bits(at, 0xffU);
  length = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
  const char32_t point =
      length == 1   ? first
      : length == 2 ? ((first & 0x1fU) << 6U) | bits(at + 1, 0x3fU)
                    : ((first & 0x0fU) << 12U) | (bits(at + 1, 0x3fU) << 6U) | bits(at + 2, 0x3fU);
  return is_harmful(point) ? point : 0;
}

// Writes harmful characters as \uXXXX. The library does this for those below U+0020 only. In JSON,
// such a character can only be in a string.
std::string with_harmful_escaped(const std::string& text) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = text.find_first_of(kSuspects); at != std::string::npos;
       at = text.find_first_of(kSuspects, at)) {
    std::size_t length = 0;
    const char32_t point = harmful_at(text, at, length);
    if (point != 0) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(point));
      out.append(text, copied, at - copied).append(escaped.data());
      copied = at + length;
    }
    at += length;
  }
  return copied == 0 ? text : out.append(text, copied);
}

template <typename Json>
std::string text_of_json(const Json& value, int indent) {
  return with_harmful_escaped(
      value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
}

// Whether JSON nests deeper than we read. The result for any other text does not matter.
bool nests_too_deep(std::string_view text) {
  constexpr int kMaxDepth = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (c == '\\') ++i;  // also a quote behind it is a part of the string
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) {
  return text_of_json(value, indent);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of_json(value, indent);
}

std::string json_string(std::string_view text) {
  return json_text(nlohmann::json(text));
}

nlohmann::json parse_json(std::string_view text) {
  // The library could count the levels with a callback. But then, after each object in an array, it
  // walks over the whole array again, which is slow for long arrays.
  if (nests_too_deep(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string valid_utf8(std::string_view text) {
  return parse_json(json_text(nlohmann::json(text))).get<std::string>();
}

nlohmann::json parse_object(std::string_view text) {
  nlohmann::json json = parse_json(text);
  return json.is_object() ? json : nlohmann::json();
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) {
    return kNothing;
  }
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t number_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

}  // namespace kymo
