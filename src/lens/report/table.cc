#include "lens/report/table.h"

#include <algorithm>
#include <utility>

#include "lens/report/human.h"

namespace kymo::report {
namespace {

// The number of characters that a terminal shows: continuation bytes of UTF-8 do not count.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

// Makes all cells printable. Columns without a heading are aligned to the left.
std::string aligned(std::vector<std::vector<std::string>> lines,
                    const std::vector<Table::Heading>& headings, std::size_t indent) {
  std::vector<std::size_t> widths;
  for (auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = printable(line[i]);
      widths[i] = std::max(widths[i], width_of(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row(indent, ' ');
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - width_of(line[i]), ' ');
      const bool right = i < headings.size() && headings[i].align == Table::Align::right;
      row += right ? padding + line[i] : line[i] + padding;
      row += "  ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

}  // namespace

std::string Table::str(std::size_t indent) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Heading& heading : headings_) {
    lines[0].push_back(heading.text);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  return aligned(std::move(lines), headings_, indent);
}

void shorten_column(std::vector<std::vector<std::string>>& rows, std::size_t column,
                    std::size_t width) {
  constexpr std::size_t kLeast = 16;
  std::vector<std::size_t> others;
  for (const auto& row : rows) {
    others.resize(std::max(others.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i != column) others[i] = std::max(others[i], width_of(printable(row[i])));
    }
  }
  std::size_t taken = 0;
  for (const std::size_t other : others) taken += other + 2;
  const std::size_t room = std::max(kLeast, width + 2 - std::min(width, taken));
  for (auto& row : rows) {
    if (column < row.size()) row[column] = shortened(printable(row[column]), room);
  }
}

std::string columns(std::vector<std::vector<std::string>> rows) {
  return aligned(std::move(rows), {}, 0);
}

}  // namespace kymo::report
