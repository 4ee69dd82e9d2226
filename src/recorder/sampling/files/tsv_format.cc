#include "recorder/sampling/files/tsv_format.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace kymo {
namespace {

static_assert(std::endian::native == std::endian::little, "words of digits are stored as they are");

constexpr std::uint64_t kLower = 100'000'000;  // ten to the eighth
constexpr std::uint64_t kTopmost = UINT64_MAX / kLower * kLower;
constexpr std::uint64_t kZeros = 0x3030303030303030;
// Each append stores whole words, also beyond the end of its text.
constexpr std::size_t kOverhang = 24;

// The four digits of 0 .. 9999 as text, the first digit in the lowest byte.
constexpr std::array<std::uint32_t, 10'000> kFourDigits = [] {
  std::array<std::uint32_t, 10'000> table{};
  for (std::uint32_t n = 0; n < table.size(); ++n) {
    table[n] = (n / 1000) | (n / 100 % 10) << 8U | (n / 10 % 10) << 16U | (n % 10) << 24U;
    table[n] += 0x30303030;
  }
  return table;
}();

// The eight digits of a value below 10^8 as text, leading zeros included.
std::uint64_t eight_digits(std::uint32_t value) noexcept {
  const std::uint32_t upper = value / 10'000;
  return kFourDigits[upper] | std::uint64_t{kFourDigits[value - upper * 10'000]} << 32U;
}

}  // namespace

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
    : capacity_(rows), buffer_(rows * stride * kMaxNumberChars + kOverhang), uppers_(stride) {
  for (std::size_t c = 0; c < stride; ++c) {
    renew(uppers_[c], 0, c > 0);
  }
}

void TsvFormatter::renew(Upper& upper, std::uint64_t value, bool with_tab) noexcept {
  const std::uint64_t digits = value / kLower;
  upper.base = digits * kLower;
  upper.strip_mask = digits == 0 ? 56 : 0;
  char* end = upper.text;
  if (with_tab) {
    *end++ = '\t';
  }
  if (digits != 0) {
    end = format_number(end, digits);
  }
  upper.size = static_cast<std::uint32_t>(end - upper.text);
}

inline char* TsvFormatter::append(char* out, Upper& upper, std::uint64_t value,
                                  bool with_tab) noexcept {
  std::uint64_t lower = value - upper.base;
  if (lower >= kLower) [[unlikely]] {  // also when the value has fallen below the base
    if (value >= kTopmost) [[unlikely]] {
      // Kept as a base, this value would be so close to 2^64 that the difference to a small later
      // value would wrap into the range of the lower digits.
      renew(upper, 0, with_tab);
      if (with_tab) {
        *out++ = '\t';
      }
      return format_number(out, value);
    }
    renew(upper, value, with_tab);
    lower = value - upper.base;
  }
  std::memcpy(out, upper.text, sizeof upper.text);
  out += upper.size;
  const std::uint64_t digits = eight_digits(static_cast<std::uint32_t>(lower));
  // The bits of the leading zeros. The last digit stays even if it is 0.
  const auto zeros =
      static_cast<std::uint32_t>(std::countr_zero((digits ^ kZeros) | std::uint64_t{1} << 56U));
  const std::uint32_t strip = zeros & upper.strip_mask;
  const std::uint64_t kept = digits >> strip;
  std::memcpy(out, &kept, sizeof kept);
  return out + 8 - strip / 8;
}

std::string_view TsvFormatter::format(const Rows& rows, std::uint64_t base_ns) noexcept {
  char* out = buffer_.data();
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::uint64_t* row = rows.data + r * rows.stride;
    out = append(out, uppers_[0], row[0] - base_ns, false);
    for (std::size_t c = 1; c < uppers_.size(); ++c) {
      out = append(out, uppers_[c], row[c], true);
    }
    *out++ = '\n';
  }
  return {buffer_.data(), static_cast<std::size_t>(out - buffer_.data())};
}

}  // namespace kymo
