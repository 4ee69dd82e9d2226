#include "sampling/tsv_format.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace kymo {

char* format_number(char* out, std::uint64_t value) noexcept {
  return std::to_chars(out, out + kMaxNumberChars, value).ptr;
}

std::string tsv_header(const std::vector<Column>& columns) {
  std::string header = "Time (ns)";
  for (const Column& column : columns) {
    header += '\t' + column.name;
  }
  return header + '\n';
}

TsvFormatter::TsvFormatter(std::size_t stride, std::size_t rows)
    : capacity_(rows), buffer_(rows * stride * kMaxNumberChars), cached_(stride - 1) {}

std::string_view TsvFormatter::format(const Rows& rows, std::uint64_t base_ns) noexcept {
  char* out = buffer_.data();
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::uint64_t* row = rows.data + r * rows.stride;
    out = format_number(out, row[0] - base_ns);
    for (std::size_t c = 0; c < cached_.size(); ++c) {
      Cached& cached = cached_[c];
      if (const std::uint64_t value = row[c + 1]; value != cached.value) {
        cached.value = value;
        const char* end = format_number(cached.text + 1, value);
        cached.size = static_cast<std::uint8_t>(end - cached.text);
      }
      std::memcpy(out, cached.text, cached.size);
      out += cached.size;
    }
    *out++ = '\n';
  }
  return {buffer_.data(), static_cast<std::size_t>(out - buffer_.data())};
}

}  // namespace kymo
