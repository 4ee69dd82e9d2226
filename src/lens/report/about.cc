#include "lens/report/about.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "lens/report/human.h"

namespace kymo::report {
namespace {

std::string raw(const nlohmann::json& value) {
  return printable(value.is_string() ? value.get<std::string>() : json_text(value));
}

// Splits a key into its name, in words, and its unit: "frozen time" and microseconds for
// "frozen_time_us".
std::pair<std::string, Unit> name_and_unit(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Unit>, 3> kEndings = {
      {{"_ns", Unit::nanoseconds}, {"_us", Unit::microseconds}, {"_bytes", Unit::bytes}}};
  Unit unit = Unit::count;
  for (const auto& [ending, of] : kEndings) {
    if (key.ends_with(ending)) {
      unit = of;
      key.remove_suffix(of == Unit::bytes ? 0 : ending.size());
      break;
    }
  }
  std::string name = printable(key);
  for (char& c : name) {
    c = c == '_' ? ' ' : c;
  }
  return {name, unit};
}

std::string figure(std::uint64_t number, Unit unit) {
  return unit == Unit::count ? std::to_string(number) : value(static_cast<double>(number), unit);
}

// The plain values of a list, such as the words of a command, in one line. Nested values are shown
// as JSON.
std::string words(const nlohmann::json& list) {
  std::string text;
  for (const nlohmann::json& word : list) {
    text += (text.empty() ? "" : " ") + raw(word);
  }
  return text;
}

std::string item(const std::string& key, const nlohmann::json& value) {
  const auto [name, unit] = name_and_unit(key);
  if (value.is_boolean()) {
    return name + (value.get<bool>() ? " yes" : " no");
  }
  if (value.is_number_unsigned()) {
    return name + " " + figure(value.get<std::uint64_t>(), unit);
  }
  return name + " " + (value.is_array() ? words(value) : raw(value));
}

// Whether this is a list of {"name": ..., "duration_ns": ...}. The parts of a scope have this form,
// and the steps of a request in old recordings, which have no scopes.
bool is_timed(const nlohmann::json& list) {
  for (const nlohmann::json& entry : list) {
    const bool timed = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.contains("duration_ns") && entry["duration_ns"].is_number_unsigned();
    if (!timed) {
      return false;
    }
  }
  return !list.empty();
}

// The top level of a timing tree: the steps of the request. Null if `value` is not a timing tree.
const nlohmann::json* steps_of(const nlohmann::json& value) {
  if (value.is_object()) {
    const auto parts = value.find("components");
    if (parts != value.end() && parts->is_array() && is_timed(*parts)) {
      return &*parts;
    }
  }
  return nullptr;
}

std::vector<std::string> items_of(const nlohmann::json& value) {
  std::vector<std::string> items;
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      items.push_back(item(key, inner));
    }
  } else {
    for (const nlohmann::json& entry : value) {
      const auto unfinished = entry.find("unfinished");
      items.push_back(printable(entry["name"].get<std::string>()) + " " +
                      duration(entry["duration_ns"].get<double>()) +
                      (unfinished != entry.end() && *unfinished == true ? " so far" : ""));
    }
  }
  return items;
}

// The report has tables of its own for these.
bool shown_elsewhere(std::string_view key) {
  constexpr std::array<std::string_view, 3> kElsewhere = {"phases", "request_began_monotonic_ns",
                                                          "verdict"};
  return std::find(kElsewhere.begin(), kElsewhere.end(), key) != kElsewhere.end();
}

}  // namespace

std::string wrapped_list(const std::string& label, const std::vector<std::string>& items,
                         std::size_t label_width, std::size_t line_width) {
  const std::string indent(label_width, ' ');
  std::string text;
  std::string row = fmt::format("{:<{}}", label, label_width);
  std::size_t on_row = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string word = items[i] + (i + 1 < items.size() ? "," : "");
    if (on_row != 0 && row.size() + 1 + word.size() > line_width) {
      text += row + '\n';
      row = indent;
      on_row = 0;
    }
    row += (on_row++ == 0 ? "" : " ") + word;
  }
  return text + row + '\n';
}

std::string about_lines(const nlohmann::json& about, std::size_t label_width,
                        std::size_t line_width) {
  if (!about.is_object()) {
    return {};
  }
  std::vector<std::string> plain;
  std::string lists;
  for (const auto& [key, whole] : about.items()) {
    if (shown_elsewhere(key)) continue;
    const nlohmann::json* steps = steps_of(whole);
    const nlohmann::json& value = steps != nullptr ? *steps : whole;
    if ((value.is_object() && !value.empty()) || (value.is_array() && is_timed(value))) {
      const std::string label = steps != nullptr ? "steps" : name_and_unit(key).first;
      lists += wrapped_list(label, items_of(value), label_width, line_width);
    } else {
      plain.push_back(item(key, value));
    }
  }
  return (plain.empty() ? "" : wrapped_list("about", plain, label_width, line_width)) + lists;
}

}  // namespace kymo::report
