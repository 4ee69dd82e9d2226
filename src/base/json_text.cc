#include "base/json_text.h"

#include <nlohmann/json.hpp>

#include "base/json_object.h"

namespace kymo {
namespace {

template <typename Json>
std::string text_of_json(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
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
  constexpr int kMaxDepth = 64;
  bool too_deep = false;
  const auto watch_depth = [&too_deep](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, watch_depth, /*allow_exceptions=*/false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : json;
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
