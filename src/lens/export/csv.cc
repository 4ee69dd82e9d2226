// RFC 4180: a header, values as recorded, lines that end in CR LF.

#include <algorithm>
#include <string_view>

#include "lens/export/formats.h"
#include "lens/export/parts.h"
#include "lens/export/text.h"

namespace kymo::exporting {
namespace {

// A spreadsheet takes a text with such a first character for a formula, which may run a program.
bool is_like_a_formula(const std::string& text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
}

void append_csv_field(std::string text, std::string& out) {
  if (is_like_a_formula(text)) text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

Result<void> write_csv(const analysis::Summary& summary, ExportFile& file) {
  file.text() += "Time (ns)";
  for (const std::string& name : column_names(summary, false)) {
    file.text() += ',';
    append_csv_field(name, file.text());
  }
  file.text() += "\r\n";
  return for_each_block(summary, [&](const analysis::RowBlock& block, std::size_t rows) {
    for (std::size_t row = 0; row < rows && !file.failed(); ++row) {
      for (std::size_t i = 0; i <= summary.columns.size(); ++i) {
        if (i != 0) file.text() += ',';
        append_number(block.column(i)[row], file.text());
      }
      file.text() += "\r\n";
      file.flush_if_large();
    }
  });
}

}  // namespace kymo::exporting
