#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kymo::report {

// Rows of text with their columns aligned: names to the left, figures to the right.
class Table {
 public:
  enum class Align : unsigned char { left, right };
  struct Heading {
    std::string text;
    Align align = Align::right;
  };

  explicit Table(std::vector<Heading> headings) : headings_(std::move(headings)) {}

  // One cell for each heading.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // The table as text. Each line begins with `indent` spaces and has no trailing spaces.
  [[nodiscard]] std::string str(std::size_t indent = 2) const;

 private:
  std::vector<Heading> headings_;
  std::vector<std::vector<std::string>> rows_;
};

// Shortens the cells of this column, to no less than 16 characters, so that the lines of columns() are at most `width` long.
void shorten_column(std::vector<std::vector<std::string>>& rows, std::size_t column,
                    std::size_t width);

// Rows of text with all columns aligned to the left. Rows may have different numbers of cells.
std::string columns(std::vector<std::vector<std::string>> rows);

}  // namespace kymo::report
