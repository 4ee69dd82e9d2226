#include <algorithm>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "input_file.h"
#include "lens/analysis/row_range.h"
#include "lens/analysis/tsv_reader.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

// The request for a line "FROM TO POINTS".
http::Request request_of(const std::string& line) {
  const std::size_t first = std::min(line.find(' '), line.size());
  const std::size_t second = std::min(line.find(' ', first + 1), line.size());
  http::Request request;
  request.query["from_ns"] = line.substr(0, first);
  request.query["to_ns"] = line.substr(std::min(first + 1, line.size()), second - first - 1);
  request.query["points"] = line.substr(std::min(second + 1, line.size()));
  return request;
}

// Returns the times of all rows. Returns nothing if a line is no row, or if a time is not later
// than the one before.
std::vector<std::uint64_t> times_in(const std::string& text) {
  auto reader = analysis::TsvReader::from_text(text, "fuzz");
  if (!reader) return {};
  std::vector<std::uint64_t> times;
  analysis::RowBlock block = reader->make_block();
  for (; *reader->next(block); block.clear()) {
    times.insert(times.end(), block.times().begin(), block.times().end());
  }
  const bool rise =
      std::adjacent_find(times.begin(), times.end(), std::greater_equal<>()) == times.end();
  return rise && reader->left_out().lines() == 0 ? times : std::vector<std::uint64_t>();
}

void check_range(const analysis::PlainText& text, const std::vector<std::uint64_t>& times,
                 std::uint64_t from, std::uint64_t to) {
  const auto range = analysis::rows_between(text, from, to);
  require(range.ok(), "what is there can be read");
  require(text.begin <= range->begin && range->begin <= range->end && range->end <= text.end,
          "the range lies in the text");
  std::vector<std::uint64_t> found;
  const auto taken = analysis::take_in_parallel(*range, 1, [&](const analysis::RowPiece& piece) {
    found.insert(found.end(), piece.rows.times().begin(), piece.rows.times().end());
  });
  require(range->begin <= taken.end && taken.end <= range->end, "no more is taken than asked for");
  if (times.empty()) return;
  auto first = std::lower_bound(times.begin(), times.end(), from);
  if (first != times.begin()) --first;
  const auto last = std::max(first, std::upper_bound(times.begin(), times.end(), to));
  require(std::equal(first, last, found.begin(), found.end()),
          "of a recording that is whole the range and the row before it are found");
}

}  // namespace

void past(Bytes data) {
  const std::string text = text_of(data);
  const std::size_t line = std::min(text.find('\n'), text.size());
  const http::Request request = request_of(text.substr(0, line));
  constexpr std::uint64_t kMaxPoints = 1000;
  const auto from = request.number("from_ns", 0, INT64_MAX);
  const auto to = request.number("to_ns", INT64_MAX, INT64_MAX);
  const auto points = request.number("points", 10, kMaxPoints);
  for (const auto* number : {&from, &to, &points}) {
    require(number->ok() || !number->error().message.empty(), "an error says something");
  }
  if (!from || !to || !points || *from >= *to) return;
  const std::string recording = "Time (ns)\ta\n" + text.substr(std::min(line + 1, text.size()));
  static InputFile file;
  file.write(recording);
  auto reader = analysis::TsvReader::open(file.path());
  if (!reader) return;
  const auto plain = reader->plain_text();
  if (!plain) return;
  require(analysis::first_time(*plain).ok(), "what is there can be read");
  check_range(*plain, times_in(recording), *from, *to);
  std::uint64_t sampled = 0;
  const auto done = analysis::sample_rows(*plain, *points, [&](const analysis::RowBlock& row) {
    require(row.rows() == 1, "a row at a time is taken");
    ++sampled;
  });
  require(done.ok() && sampled <= *points, "no more rows are taken than points are asked for");
}

}  // namespace kymo::fuzz
