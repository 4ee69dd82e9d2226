#include "report/table.h"

#include <algorithm>

#include "report/human.h"

namespace kymo::report {
namespace {

// The number of characters that a terminal shows: continuation bytes of UTF-8 do not count.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

std::string Table::str(std::size_t indent) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Heading& heading : headings_) {
    lines[0].push_back(heading.text);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  for (auto& line : lines) {
    for (std::string& cell : line) cell = printable(cell);
  }
  std::vector<std::size_t> widths(headings_.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row(indent, ' ');
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string padding(widths[i] - width_of(line[i]), ' ');
      row += headings_[i].align == Align::left ? line[i] + padding : padding + line[i];
      row += "  ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

}  // namespace kymo::report
