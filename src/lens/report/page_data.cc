#include "lens/report/page_data.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"

namespace kymo::report {
namespace {

// Each element is KIND ID SIZE and a line feed, and then as many bytes.
constexpr char kJson = 'j';
constexpr char kPacked = 'p';
constexpr char kScript = 's';

struct Element {
  char kind = 0;
  std::string_view id;
  std::string_view bytes;
};

bool is_id(std::string_view text) {
  constexpr std::size_t kMax = 64;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.size() <= kMax &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

// Takes the first element from the text.
std::optional<Element> take_element(std::string_view& text) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  const std::string_view head = text.substr(0, line);
  const std::size_t space = head.rfind(' ');
  if (line == text.size() || head.size() < 2 || head[1] != ' ' || space < 2) return std::nullopt;
  Element element{head[0], head.substr(2, space - 2), {}};
  std::size_t size = 0;
  const char* const end = head.data() + head.size();
  const auto [after, error] = std::from_chars(head.data() + space + 1, end, size);
  const std::string_view rest = text.substr(line + 1);
  if (error != std::errc() || after != end || size > rest.size()) return std::nullopt;
  element.bytes = rest.substr(0, size);
  text = rest.substr(size);
  return is_id(element.id) ? std::optional(element) : std::nullopt;
}

}  // namespace

void PageData::add(char kind, std::string_view id, std::string_view bytes) {
  text_ += kind;
  text_ += ' ';
  text_ += id;
  text_ += ' ' + std::to_string(bytes.size()) + '\n';
  text_ += bytes;
}

void PageData::add_data(std::string_view id, const nlohmann::ordered_json& json) {
  add(kJson, id, json_text(json));
}

void PageData::add_packed(std::string_view id, std::string_view bytes) {
  add(kPacked, id, bytes);
}

void PageData::add_script_here() {
  add(kScript, "script", {});
}

Result<void> add_page_data(std::string_view text, std::string_view script, Page& page) {
  bool has_script = false;
  while (!text.empty()) {
    const std::optional<Element> element = take_element(text);
    if (element && element->kind == kJson) {
      page.add_json(element->id, element->bytes);
    } else if (element && element->kind == kPacked) {
      page.add_packed(element->id, element->bytes);
    } else if (element && element->kind == kScript && !has_script) {
      page.add_script(script);
      has_script = true;
    } else {
      return Error{Code::data_loss,
                   "make a page: the process that reads the recording sent no data of a page"};
    }
  }
  if (!has_script) page.add_script(script);
  return {};
}

}  // namespace kymo::report
