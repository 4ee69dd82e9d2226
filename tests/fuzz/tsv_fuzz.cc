#include <algorithm>

#include "analysis/tsv_reader.h"
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
  // In a log there are others' lines, too.
  require(reader->embedded_metadata() == nullptr ? told == lines : told <= lines,
          "every line is a row or left out");
}

}  // namespace

void tsv(Bytes data) {
  const std::string text = text_of(data);
  read_tsv(text);
  // Most inputs do not reach the rows: behind a header they do.
  read_tsv("Time (ns)\ta\tb\n" + text);
}

}  // namespace kymo::fuzz
