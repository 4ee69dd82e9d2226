#include "read_recording.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/metadata.h"
#include "analysis/tsv_reader.h"

namespace kymo::tests {
namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

void read_rows(const std::string& text) {
  auto reader = analysis::TsvReader::from_text(text, "fuzz");
  if (!reader) {
    require(!reader.error().message.empty(), "an error says something");
    return;
  }
  std::uint64_t rows = 0;
  std::uint64_t last_time = 0;
  // Small, so that inputs of a few lines already meet the block's end.
  analysis::RowBlock block(reader->columns().size() + 1, 4);
  for (;;) {
    auto more = reader->next(block);
    require(more.ok(), "memory is always readable");
    if (!*more) {
      break;
    }
    require(block.rows() != 0, "a block that was filled holds rows");
    rows += block.rows();
    for (const std::uint64_t time : block.times()) {
      require(time >= last_time, "time never goes back");
      last_time = time;
    }
  }
  const auto ends = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const std::uint64_t lines = ends - 1 + (text.back() == '\n' ? 0 : 1);
  const std::uint64_t told = rows + reader->left_out().lines();
  // In a log there are others' lines, too.
  require(reader->embedded_metadata() == nullptr ? told == lines : told <= lines,
          "every line is a row or left out");
  require(reader->left_out().sentences().size() <= analysis::LeftOut::kMaxSpans + 1,
          "the list of damage is bounded");
}

}  // namespace

void read_recording(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  read_rows(text);
  // Most inputs do not reach the rows: behind a header they do.
  read_rows("Time (ns)\ta\tb\n" + text);
  auto metadata = analysis::parse_metadata(text, "fuzz");
  require(metadata.ok() || !metadata.error().message.empty(), "an error says something");
}

}  // namespace kymo::tests
