#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// Parts of the texts of /proc. None of them fails: what is not there is empty or 0.
namespace kymo::preflight {

// Takes the first line off, without its end.
std::string_view take_line(std::string_view& text);
// The words between blanks.
std::vector<std::string_view> words_of(std::string_view line);
// The number at the beginning of the text.
std::uint64_t number_at(std::string_view text, int base = 10);
// The value of a line "KEY:<blanks>VALUE" of status or fdinfo.
std::string_view value_of(std::string_view text, std::string_view key);
// The same as a number.
std::uint64_t number_of(std::string_view text, std::string_view key, int base = 10);

}  // namespace kymo::preflight
