#include "lens/analysis/row_range.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

namespace kymo::analysis {
namespace {

constexpr std::uint64_t kPiece = 64U << 10U;
// A line of 4096 columns, the most that a recorder can have, is at most 86 KiB long.
constexpr std::uint64_t kMaxRow = 128U << 10U;
constexpr std::uint64_t kProbe = 16U << 10U;  // nearly always holds a whole row

Result<std::string> read_piece(const PlainText& text, std::uint64_t at, std::uint64_t most) {
  std::string piece(std::min(most, text.end - at), '\0');
  std::size_t filled = 0;
  while (filled < piece.size()) {
    const ssize_t got = pread(text.fd, piece.data() + filled, piece.size() - filled,
                              static_cast<off_t>(at + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read the recording", errno);
    if (got == 0) break;  // the file has been truncated
    filled += static_cast<std::size_t>(got);
  }
  piece.resize(filled);
  return piece;
}

// The number that a row begins with.
std::optional<std::uint64_t> time_of(std::string_view line) {
  std::uint64_t time = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), time);
  const bool whole = end == line.data() + line.size() || *end == '\t';
  return error == std::errc() && whole ? std::optional(time) : std::nullopt;
}

struct Row {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // after its line end
  std::uint64_t time = 0;
};

// The first whole row of `view`, the text at offset `at`. `is_begin`: a line begins at `at`.
std::optional<Row> first_row_of(std::string_view view, std::uint64_t at, bool is_begin) {
  std::size_t begin = is_begin ? 0 : view.find('\n') + 1;  // npos + 1 is 0
  if (!is_begin && begin == 0) return std::nullopt;
  for (;;) {
    const std::size_t end = view.find('\n', begin);
    if (end == view.npos) return std::nullopt;
    if (const auto time = time_of(view.substr(begin, end - begin))) {
      return Row{at + begin, at + end + 1, *time};
    }
    begin = end + 1;
  }
}

// The first row that begins at or after the offset `at`. `is_begin`: a line begins at `at`.
Result<std::optional<Row>> row_from(const PlainText& text, std::uint64_t at, bool is_begin) {
  std::optional<Row> row;
  for (const std::uint64_t most : {kProbe, 2 * kMaxRow}) {
    const Result<std::string> piece = read_piece(text, at, most);
    if (!piece) return piece.error();
    row = first_row_of(*piece, at, is_begin);
    if (row || piece->size() < most) break;
  }
  return row;
}

// The offset `at` of the first row that is not earlier than a given time, and the offset `before`
// of the row before it.
struct Border {
  std::uint64_t before = 0;
  std::uint64_t at = 0;
};

Result<Border> border_of(const PlainText& text, std::uint64_t time) {
  // Rows before `low` are earlier than `time`. The first row at or after `high` is not.
  std::uint64_t low = text.begin;
  std::uint64_t high = text.end;
  while (high - low > kPiece) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto row = row_from(text, middle, false);
    if (!row) return row.error();
    if (*row && (*row)->time < time && (*row)->begin < high) {
      low = (*row)->begin;
    } else {
      high = middle;
    }
  }
  Border border{low, low};
  const Result<std::string> piece = read_piece(text, low, high - low + 2 * kMaxRow);
  if (!piece) return piece.error();
  const std::string_view view = *piece;
  for (std::size_t begin = 0;;) {
    const std::size_t end = view.find('\n', begin);
    border.at = low + begin;
    if (end == view.npos) return border;
    const auto here = time_of(view.substr(begin, end - begin));
    if (here && *here >= time) return border;
    border.before = low + begin;
    begin = end + 1;
  }
}

}  // namespace

Result<PlainText> rows_between(const PlainText& text, std::uint64_t from_ns, std::uint64_t to_ns) {
  const Result<Border> begin = border_of(text, from_ns);
  if (!begin) return begin.error();
  const Result<Border> end =
      to_ns == UINT64_MAX ? border_of(text, to_ns) : border_of(text, to_ns + 1);
  if (!end) return end.error();
  PlainText part = text;
  part.begin = begin->before;
  part.end = std::max(end->at, part.begin);
  return part;
}

Result<void> sample_rows(const PlainText& text, std::size_t count,
                         const std::function<void(const RowBlock&)>& take) {
  if (count == 0 || text.begin == text.end) return {};
  RowParser parser(text.columns, 1);
  RowBlock block(text.columns, 1);
  const std::uint64_t step = (text.end - text.begin - 1) / count + 1;  // rounded up
  std::uint64_t behind = text.begin;  // offset after the last row that was taken
  for (std::uint64_t at = text.begin; at < text.end; at += step) {
    const auto row = row_from(text, std::max(at, behind), at <= behind);
    if (!row) return row.error();
    if (!*row) continue;
    behind = (*row)->end;
    const Result<std::string> line = read_piece(text, (*row)->begin, behind - (*row)->begin);
    if (!line) return line.error();
    block.clear();
    parser.parse(*line, block);
    if (block.rows() == 1) take(block);
  }
  return {};
}

Result<std::optional<std::uint64_t>> first_time(const PlainText& text) {
  const auto row = row_from(text, text.begin, true);
  if (!row) return row.error();
  return *row ? std::optional((*row)->time) : std::nullopt;
}

}  // namespace kymo::analysis
