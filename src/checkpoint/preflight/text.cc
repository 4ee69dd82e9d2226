#include "checkpoint/preflight/text.h"

#include <algorithm>
#include <charconv>

namespace kymo::preflight {

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size());
  }
}

std::uint64_t number_at(std::string_view text, int base) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':')) {
      const std::string_view value = line.substr(key.size() + 1);
      return value.substr(std::min(value.find_first_not_of(" \t"), value.size()));
    }
  }
  return {};
}

std::uint64_t number_of(std::string_view text, std::string_view key, int base) {
  return number_at(value_of(text, key), base);
}

}  // namespace kymo::preflight
