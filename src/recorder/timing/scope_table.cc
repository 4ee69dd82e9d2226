#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/human.h"
#include "kymo/scope.h"
#include "recorder/timing/flatten.h"

namespace kymo {
namespace {

// A line of the table; the name is the last cell, and not padded.
using Cells = std::array<std::string, 4>;

// A name that was made at run time may have characters that act on a terminal.
std::string without_control_characters(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string in_brackets_unless(bool counts, std::string text) {
  if (counts) {
    return text;
  }
  text.insert(text.begin(), '(');
  text += ')';
  return text;
}

std::string bytes_cell(std::uint64_t bytes) {
  return bytes == 0 ? std::string() : human::bytes(bytes);
}

// The number of columns on a terminal: in UTF-8, one for each byte that begins a character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

Cells cells_of(const FlatScope& row) {
  std::string name(2 * row.depth, ' ');
  name += without_control_characters(row.name);
  if (!row.error.empty()) {
    name += " (failed: " + without_control_characters(row.error) + ")";
  } else if (row.unfinished) {
    name += " (unfinished)";
  }
  return {
      in_brackets_unless(row.time_counted, human::duration(row.duration_ns)),
      without_control_characters(row.category),
      row.bytes == 0 ? std::string() : in_brackets_unless(row.bytes_counted, bytes_cell(row.bytes)),
      std::move(name)};
}

std::string text_of_lines(const std::vector<Cells>& lines) {
  std::array<std::size_t, 3> widths{};
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths.at(i) = std::max(widths.at(i), width_of(line.at(i)));
    }
  }
  std::string text;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string padding(widths.at(i) - width_of(line.at(i)), ' ');
      const bool left = i == 1;  // the category
      text += left ? line.at(i) : padding;
      text += left ? padding : line.at(i);
      text += "  ";
    }
    text += line.back();
    text += '\n';
  }
  return text;
}

}  // namespace

std::string ScopeTree::table() const {
  const FlatTree tree = flatten(records());
  std::vector<Cells> lines = {{"duration", "category", "bytes", "name"}};
  for (const FlatScope& row : tree.rows) {
    lines.push_back(cells_of(row));
  }
  lines.push_back({human::duration(tree.unaccounted_ns), "", "", "unaccounted"});
  if (tree.overlap_ns != 0) {
    lines.push_back({"-" + human::duration(tree.overlap_ns), "", "", "counted twice"});
  }
  lines.push_back({human::duration(tree.total_ns), "", bytes_cell(tree.total_bytes), "total"});
  std::string text = text_of_lines(lines);
  if (const std::uint64_t left_out = dropped(); left_out != 0) {
    text += std::to_string(left_out);
    text += left_out == 1 ? " scope was left out\n" : " scopes were left out\n";
  }
  return text;
}

}  // namespace kymo
