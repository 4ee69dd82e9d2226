#include "lens/analysis/tsv_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text_file.h"
#include "lens/analysis/annotated_lines.h"

namespace kymo::analysis {
namespace {

constexpr std::string_view kTimeColumn = "Time (ns)";
// The buffer is small at first, for small files. For others it grows to a size that is longer than
// any line of 4096 columns, the most that a recorder can have.
constexpr std::size_t kFirstBufferBytes = 16 * 1024;
constexpr std::size_t kBufferBytes = 1024 * 1024;
// The size of one read. It is small enough that the bytes are parsed while they are in the CPU's
// cache.
constexpr std::size_t kReadBytes = 256 * 1024;

std::vector<std::string> split_header(std::string_view header) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t tab = header.find('\t');
    names.emplace_back(header.substr(0, tab));
    if (tab == header.npos) {
      return names;
    }
    header.remove_prefix(tab + 1);
  }
}

}  // namespace

struct TsvReader::State {
  State(std::string path_in, std::optional<TextFile> source)
      : path(std::move(path_in)), file(std::move(source)) {}

  std::string path;
  std::optional<TextFile> file;  // empty: the whole text is in `buffer`
  std::string buffer;            // the bytes [used, filled) are not parsed yet
  std::size_t used = 0;
  std::size_t filled = 0;
  std::size_t header_bytes = 0;  // of plain TSV
  bool at_end = false;           // the file has no bytes after those in `buffer`
  bool damage_noted = false;
  std::vector<std::string> columns;
  std::optional<RowParser> parser;
  std::optional<AnnotatedLines> annotated;
  std::string row;  // reused for each row of an annotated file

  [[nodiscard]] std::string_view pending() const {
    const std::string_view all = buffer;
    return all.substr(used, filled - used);
  }

  // Moves the unparsed bytes to the front of the buffer and reads more.
  Result<void> refill() {
    if (!file) {
      at_end = true;
      return {};
    }
    std::memmove(buffer.data(), buffer.data() + used, filled - used);
    filled -= used;
    used = 0;
    const std::size_t wanted = std::min(buffer.size() - filled, kReadBytes);
    const Result<std::size_t> more = file->read(buffer.data() + filled, wanted);
    if (!more) {
      return more.error();
    }
    filled += *more;
    at_end = *more < wanted;
    if (!at_end && buffer.size() < kBufferBytes) {
      buffer.resize(kBufferBytes);
    }
    return {};
  }

  Result<void> read_header();
  Result<bool> read_annotated_header();
  Result<std::optional<std::string_view>> next_line();
  Result<void> fill_from_annotated(RowBlock& block);
  Result<void> skip_long_line();
  void end_text();
};

// Notes damage, or an incomplete line, at the end of the file.
void TsvReader::State::end_text() {
  const std::string_view text = pending();
  if (file && !file->damage().empty() && !damage_noted) {
    damage_noted = true;
    parser->skip_line(file->damage());
  } else if (!text.empty()) {
    parser->skip_line("cut short: the file ends in the middle of this row");
  }
  used = filled;
}

Result<void> TsvReader::State::read_header() {
  // A header with thousands of columns is longer than the first read.
  do {
    if (auto read = refill(); !read) {
      return read;
    }
  } while (!at_end && filled < buffer.size() && pending().find('\n') == std::string_view::npos);
  const std::string_view text = pending();
  if (text.empty() && file && !file->damage().empty()) {
    return Error{Code::data_loss,
                 "read " + path + ": " + file->damage() + ", before the header was whole"};
  }
  if (text.empty()) {
    return Error{Code::data_loss,
                 "read " + path + ": the file is empty: it does not even have a header"};
  }
  const std::size_t end = text.find('\n');
  const std::string_view header = text.substr(0, end);
  if (end == text.npos && (kTimeColumn.starts_with(text) || text.starts_with(kTimeColumn))) {
    return Error{Code::data_loss,
                 "read " + path + ": the file ends in the middle of its header, so it has no rows"};
  }
  const std::string first_line = in_quotes(header);
  const bool ours = header == kTimeColumn ||
                    header.substr(0, kTimeColumn.size() + 1) == std::string(kTimeColumn) + '\t';
  if (!ours) {
    const auto annotations = read_annotated_header();
    if (!annotations || *annotations) {
      return annotations ? Result<void>() : annotations.error();
    }
    return Error{Code::invalid_argument,
                 "read " + path + ": its first line is " + first_line +
                     ", not the header of a plain recording, which begins with \"Time (ns)\""};
  }
  columns = split_header(header);
  parser.emplace(columns.size(), 2);
  columns.erase(columns.begin());
  used += end + 1;
  header_bytes = end + 1;
  return {};
}

// The next line without its line end. Nothing at the end of the file, also if there is a last line
// without a line end. Of a line that does not fit into the buffer, only the end is returned.
Result<std::optional<std::string_view>> TsvReader::State::next_line() {
  for (;;) {
    const std::string_view text = pending();
    if (const std::size_t end = text.find('\n'); end != text.npos) {
      used += end + 1;
      return std::optional(text.substr(0, end));
    }
    if (at_end) {
      return std::optional<std::string_view>();
    }
    if (text.size() == buffer.size()) {
      used = filled;  // the line is too long; its end will be no line of the recording
    }
    if (auto read = refill(); !read) {
      return read.error();
    }
  }
}

// Returns false if there is none. Then the file has been read to its end.
Result<bool> TsvReader::State::read_annotated_header() {
  AnnotatedLines lines;
  std::vector<std::pair<std::uint64_t, std::string>> damaged;  // by line, before the header
  std::uint64_t number = 0;
  bool first = true;
  bool ours = false;
  for (;;) {
    const auto line = next_line();
    if (!line) {
      return line.error();
    }
    if (!*line) {
      return false;
    }
    ours =
        ours || (first && AnnotatedLines::begins_plain(**line)) || AnnotatedLines::is_lossy(**line);
    first = false;
    const AnnotatedLines::Line read = ours ? lines.classify(**line) : AnnotatedLines::Line{};
    ++number;
    if (read.kind == AnnotatedLines::Kind::damaged && damaged.size() < LeftOut::kMaxSpans) {
      damaged.emplace_back(number, read.reason);
    }
    if (read.kind == AnnotatedLines::Kind::header) {
      columns = split_header(read.text);
      break;
    }
  }
  parser.emplace(columns.size(), 1);
  columns.erase(columns.begin());
  for (auto& [line, reason] : damaged) {
    while (parser->line() < line) {
      parser->pass_line();
    }
    parser->skip_line(std::move(reason));
  }
  while (parser->line() <= number) {
    parser->pass_line();
  }
  annotated = std::move(lines);
  return true;
}

Result<void> TsvReader::State::fill_from_annotated(RowBlock& block) {
  while (!block.full()) {
    const auto line = next_line();
    if (!line) {
      return line.error();
    }
    if (!*line) {
      end_text();
      annotated->finish();
      return {};
    }
    AnnotatedLines::Line read = annotated->classify(**line);
    switch (read.kind) {
      case AnnotatedLines::Kind::row:
        row.assign(read.text);
        row += '\n';
        parser->parse(row, block);
        break;
      case AnnotatedLines::Kind::damaged:
        parser->skip_line(std::move(read.reason));
        break;
      case AnnotatedLines::Kind::header:
      case AnnotatedLines::Kind::other:
        parser->pass_line();
        break;
    }
  }
  return {};
}

// Skips a line that does not fit into the buffer, piece by piece. No row is that long.
Result<void> TsvReader::State::skip_long_line() {
  for (;;) {
    const std::size_t end = pending().find('\n');
    if (end != std::string_view::npos) {
      used += end + 1;
      break;
    }
    used = filled;
    if (at_end) {
      break;
    }
    if (auto read = refill(); !read) {
      return read;
    }
  }
  parser->skip_line("longer than any row");
  return {};
}

TsvReader::TsvReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TsvReader::TsvReader(TsvReader&&) noexcept = default;
TsvReader& TsvReader::operator=(TsvReader&&) noexcept = default;
TsvReader::~TsvReader() = default;

Result<TsvReader> TsvReader::open(const std::string& path) {
  Result<TextFile> file = TextFile::open(path);
  if (!file) {
    return file.error();
  }
  auto state = std::make_unique<State>(path, *std::move(file));
  state->buffer.resize(kFirstBufferBytes);
  if (auto header = state->read_header(); !header) {
    return header.error();
  }
  return TsvReader(std::move(state));
}

Result<TsvReader> TsvReader::from_text(std::string text, const std::string& name) {
  auto state = std::make_unique<State>(name, std::nullopt);
  state->buffer = std::move(text);
  state->filled = state->buffer.size();
  if (auto header = state->read_header(); !header) {
    return header.error();
  }
  return TsvReader(std::move(state));
}

const std::vector<std::string>& TsvReader::columns() const {
  return state_->columns;
}

std::optional<PlainText> TsvReader::plain_text() const {
  const State& state = *state_;
  const std::optional<int> fd = state.file ? state.file->seekable() : std::nullopt;
  struct stat status {};
  if (!fd || state.annotated || ::fstat(*fd, &status) != 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return PlainText{*fd, state.header_bytes, size, state.columns.size() + 1};
}

Result<void> TsvReader::skip(const RowsTaken& taken) {
  State& state = *state_;
  if (taken.rows == 0) return {};
  if (auto sought = state.file->seek(taken.end); !sought) return sought;
  state.used = state.filled = 0;
  state.at_end = false;
  state.parser->pass_rows(taken.rows, taken.last_time);
  return {};
}

RowBlock TsvReader::make_block() const {
  const std::size_t columns = state_->columns.size() + 1;
  return {columns, RowBlock::default_capacity(columns)};
}

Result<bool> TsvReader::next(RowBlock& block) {
  State& state = *state_;
  block.clear();
  if (state.annotated) {
    if (auto filled = state.fill_from_annotated(block); !filled) {
      return filled.error();
    }
    return block.rows() != 0;
  }
  while (!block.full()) {
    const std::string_view text = state.pending();
    const std::size_t last_end = text.rfind('\n');
    if (last_end != text.npos) {
      state.used += state.parser->parse(text.substr(0, last_end + 1), block);
      continue;
    }
    if (state.at_end) {
      state.end_text();
      break;
    }
    const bool too_long = text.size() == state.buffer.size();
    if (auto read = too_long ? state.skip_long_line() : state.refill(); !read) {
      return read.error();
    }
  }
  return block.rows() != 0;
}

const Metadata* TsvReader::embedded_metadata() const {
  return state_->annotated ? &state_->annotated->metadata() : nullptr;
}

std::vector<std::string> TsvReader::embedded_notes() const {
  return state_->annotated ? state_->annotated->notes() : std::vector<std::string>();
}

const LeftOut& TsvReader::left_out() const {
  return state_->parser->left_out();
}

}  // namespace kymo::analysis
