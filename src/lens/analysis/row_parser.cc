#include "lens/analysis/row_parser.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kymo::analysis {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::uint64_t kMaxLinesOneByOne = 4096;
constexpr std::uint64_t kRowsWorthAScan = 64;
constexpr int kSafeDigits = 19;  // 10^19 - 1 is below 2^64

// Parses the number again, with the overflow check that the fast loop does not have. Returns false
// if it is above 2^64 - 1.
bool parse_checked(std::string_view digits, std::uint64_t& value) {
  value = 0;
  for (char c : digits) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  return true;
}

// Reads one value that ends with `terminator`. Returns the place after the terminator, or null.
// It needs no end of the text, because every line has a line end, where it stops.
const char* parse_value(const char* p, char terminator, std::uint64_t& value) {
  const char* begin = p;
  std::uint64_t v = 0;
  for (;; ++p) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(*p)) - '0';
    if (digit > 9) {
      break;
    }
    v = v * 10 + digit;
  }
  const auto length = p - begin;
  if (length == 0 || *p != terminator) {
    return nullptr;
  }
  if (length > kSafeDigits && !parse_checked({begin, static_cast<std::size_t>(length)}, v)) {
    return nullptr;
  }
  value = v;
  return p + 1;
}

// Says why `line` is not a row of `columns` values.
std::string reason_of(std::string_view line, std::size_t columns) {
  const auto found = static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
  if (line.empty()) {
    return "an empty line";
  }
  if (found != columns) {
    return std::to_string(found) + " values where the header has " + std::to_string(columns);
  }
  for (std::size_t column = 1;; ++column) {
    const std::string_view value = line.substr(0, line.find('\t'));
    const bool number = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
    std::uint64_t ignored = 0;
    if (!number || !parse_checked(value, ignored)) {
      return "value " + std::to_string(column) + ", " + in_quotes(value) +
             (number ? ", is past 2^64 - 1" : ", is not a whole number");
    }
    if (value.size() == line.size()) {
      return "not a row";
    }
    line.remove_prefix(value.size() + 1);
  }
}

}  // namespace

std::size_t RowBlock::default_capacity(std::size_t columns) {
  return std::clamp<std::size_t>(kBlockBytes / sizeof(std::uint64_t) / columns, 16, 8192);
}

RowParser::RowParser(std::size_t columns, std::uint64_t first_line, const RowKernel* kernel)
    : columns_(columns), line_(first_line) {
  if (kernel != nullptr) scan_.emplace(columns, *kernel);
}

std::size_t RowParser::parse(std::string_view lines, RowBlock& block) {
  const char* p = lines.data();
  const char* const end = p + lines.size();
  while (p != end && !block.full()) {
    const bool margin = static_cast<std::size_t>(p - lines.data()) >= RowScan::kMargin;
    if (scan_ && margin && lines_to_scan_ == 0) {
      p = scan_rows(p, end, block);
    } else {
      lines_to_scan_ -= margin && lines_to_scan_ != 0 ? 1 : 0;
      p = parse_line(p, end, block);
    }
  }
  return static_cast<std::size_t>(p - lines.data());
}

// Scans rows until a line that the scan cannot parse. Such lines are parsed one by one. If scans
// find few rows, the number of lines before the next scan doubles each time.
const char* RowParser::scan_rows(const char* p, const char* end, RowBlock& block) {
  const RowScan::Destination target{block.words_.data() + block.rows_, block.capacity_,
                                    block.capacity_ - block.rows_};
  const RowScan::Scanned scanned =
      scan_->scan({p, static_cast<std::size_t>(end - p)}, target, last_time_);
  if (scanned.rows != 0) {
    block.rows_ += scanned.rows;
    last_time_ = block.times().back();
    line_ += scanned.rows;
  }
  lines_one_by_one_ =
      scanned.rows >= kRowsWorthAScan ? 1 : std::min(2 * lines_one_by_one_, kMaxLinesOneByOne);
  lines_to_scan_ = lines_one_by_one_;
  return p + scanned.bytes;
}

const char* RowParser::parse_line(const char* p, const char* end, RowBlock& block) {
  const char* const line_begin = p;
  std::uint64_t* out = block.words_.data() + block.rows_;
  for (std::size_t column = 0; column < columns_ && p != nullptr; ++column) {
    p = parse_value(p, column + 1 == columns_ ? '\n' : '\t', out[column * block.capacity_]);
  }
  if (p == nullptr) {
    const std::string_view rest(line_begin, static_cast<std::size_t>(end - line_begin));
    const std::string_view line = rest.substr(0, rest.find('\n'));
    p = line_begin + line.size() + 1;
    left_out_.add(line_, reason_of(line, columns_));
  } else if (*out < last_time_) {
    left_out_.add(line_, "its time is before that of the row above");
  } else {
    last_time_ = *out;
    ++block.rows_;
  }
  ++line_;
  return p;
}

void RowParser::begin_again() {
  lines_to_scan_ = 0;
  lines_one_by_one_ = 1;
  line_ = 1;
  last_time_ = 0;
  left_out_ = {};
}

void RowParser::skip_line(std::string reason) {
  left_out_.add(line_++, std::move(reason));
}

}  // namespace kymo::analysis
