#include <algorithm>
#include <string>
#include <string_view>

#include "lens/analysis/row_kernel.h"
#include "lens/analysis/row_parser.h"
#include "lens/analysis/tsv_reader.h"
#include "read_rows.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

void read_tsv(const std::string& text) {
  auto reader = analysis::TsvReader::from_text(text, "fuzz");
  if (!reader) {
    require(!reader.error().message.empty(), "an error says something");
    return;
  }
  const RowsRead read = read_rows(*reader);
  const auto ends = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const std::uint64_t lines = ends - 1 + (text.back() == '\n' ? 0 : 1);
  const std::uint64_t told = read.rows + read.left_out;
  // A recording inside a log also has lines of other programs.
  require(reader->embedded_metadata() == nullptr ? told == lines : told <= lines,
          "every line is a row or left out");
}

// Returns the values of all rows, and what the parser says about the other lines.
std::string parsed(std::string_view lines, const analysis::RowKernel* kernel) {
  constexpr std::size_t kColumns = 3;
  analysis::RowParser parser(kColumns, 1, kernel);
  analysis::RowBlock block(kColumns, 64);
  std::string all;
  for (; !lines.empty(); block.clear()) {
    lines.remove_prefix(parser.parse(lines, block));
    for (std::size_t row = 0; row < block.rows(); ++row) {
      for (std::size_t i = 0; i < kColumns; ++i) all += std::to_string(block.column(i)[row]) + ' ';
    }
  }
  for (const std::string& sentence : parser.left_out().sentences()) all += sentence + '\n';
  return all;
}

}  // namespace

void tsv(Bytes data) {
  const std::string text = text_of(data);
  read_tsv(text);
  // Most inputs have no header, and do not reach the rows. This header helps.
  read_tsv("Time (ns)\ta\tb\n" + text);
  // The first bytes of a text are never scanned, so a plain row comes first.
  const std::string lines = "1234567\t12345678\t1\n" + text + "\n";
  const std::string expected = parsed(lines, nullptr);
  for (const analysis::RowKernel* kernel : analysis::row_kernels()) {
    require(parsed(lines, kernel) == expected, "all kernels read the same");
  }
}

}  // namespace kymo::fuzz
