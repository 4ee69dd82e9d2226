#include "analysis/row_scan.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>

// The build's own flags stay those of any x86-64: these functions alone use more, after asking.
#define KYMO_TARGET __attribute__((target("avx2,bmi")))

namespace kymo::analysis {
namespace {

constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr std::uint32_t kMostDigits = 16;
constexpr std::size_t kUnasked = 8;  // places that are written behind the last one

// Row `n` keeps the last `n` of 16 bytes; the rows above 16 are there so that any five bits are an
// index.
struct KeepLast {
  alignas(32) std::array<std::array<unsigned char, 16>, 32> rows{};
  constexpr KeepLast() {
    for (std::size_t n = 0; n <= kMostDigits; ++n) {
      for (std::size_t i = kMostDigits - n; i < kMostDigits; ++i) rows.at(n).at(i) = 0xff;
    }
  }
};
constexpr KeepLast kKeepLast;

const __m128i* bytes_at(const char* p) {
  return reinterpret_cast<const __m128i*>(p);
}

KYMO_TARGET std::uint32_t non_digits(const char* p) {
  const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i digits = _mm256_sub_epi8(text, _mm256_set1_epi8('0'));
  const __m256i small = _mm256_min_epu8(digits, _mm256_set1_epi8(9));
  return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(small, digits)));
}

// Writes the place of every byte that is no digit; up to 8 places more than it returns are
// written. `out` needs room for one a byte, and for those.
KYMO_TARGET std::size_t index_separators(std::string_view text, std::uint32_t* out) {
  std::uint32_t* next = out;
  std::uint32_t at = 0;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (; at + 64 <= size; at += 64) {
    std::uint64_t mask =
        non_digits(text.data() + at) | std::uint64_t{non_digits(text.data() + at + 32)} << 32U;
    const int count = __builtin_popcountll(mask);
    // Values of 6 to 12 digits leave up to nine: eight are written unasked, which no branch
    // predictor gets wrong.
    for (int i = 0; i < 8; ++i) {
      next[i] = at + static_cast<std::uint32_t>(_tzcnt_u64(mask));
      mask = _blsr_u64(mask);
    }
    for (int i = 8; i < count; ++i) {
      next[i] = at + static_cast<std::uint32_t>(_tzcnt_u64(mask));
      mask = _blsr_u64(mask);
    }
    next += count;
  }
  for (; at < size; ++at) {
    if (static_cast<unsigned char>(text[at] - '0') > 9) *next++ = at;
  }
  return static_cast<std::size_t>(next - out);
}

// Two numbers that end before `end0` and `end1`, of `length` digits each (modulo 32), at once.
struct Two {
  std::uint64_t first;
  std::uint64_t second;
};
KYMO_TARGET Two parse_two(const char* end0, std::uint32_t length0, const char* end1,
                          std::uint32_t length1) {
  const auto keep = [](std::uint32_t length) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(kKeepLast.rows[length & 31U].data()));
  };
  __m256i x =
      _mm256_set_m128i(_mm_loadu_si128(bytes_at(end1 - 16)), _mm_loadu_si128(bytes_at(end0 - 16)));
  x = _mm256_and_si256(_mm256_sub_epi8(x, _mm256_set1_epi8('0')),
                       _mm256_set_m128i(keep(length1), keep(length0)));
  x = _mm256_maddubs_epi16(x, _mm256_set1_epi16(0x010a));   // pairs of digits: 10 a + b
  x = _mm256_madd_epi16(x, _mm256_set1_epi32(0x00010064));  // fours: 100 a + b
  x = _mm256_packus_epi32(x, x);
  x = _mm256_madd_epi16(x, _mm256_set1_epi32(0x00012710));  // eights: 10000 a + b
  const auto joined = [](std::int64_t halves) {
    const auto both = static_cast<std::uint64_t>(halves);
    return (both & 0xffffffffU) * 100'000'000 + (both >> 32U);
  };
  return {joined(_mm256_extract_epi64(x, 0)), joined(_mm256_extract_epi64(x, 2))};
}

// One row; `separators` are its own. Not 0: it is not plain.
KYMO_TARGET std::uint32_t parse_row(const char* text, std::uint32_t begin,
                                    const std::uint32_t* separators, std::size_t columns,
                                    std::uint64_t* out, std::size_t stride) {
  const auto bad_length = [](std::uint32_t length) { return (length - 1) & ~(kMostDigits - 1); };
  const auto bad_end = [&](std::uint32_t end, std::size_t column) {
    return static_cast<std::uint32_t>(text[end] ^ (column + 1 == columns ? '\n' : '\t'));
  };
  std::uint32_t bad = 0;
  std::size_t column = 0;
  for (; column + 2 <= columns; column += 2) {
    const std::uint32_t end0 = separators[column];
    const std::uint32_t end1 = separators[column + 1];
    const std::uint32_t length0 = end0 - begin;
    const std::uint32_t length1 = end1 - end0 - 1;
    begin = end1 + 1;
    bad |= bad_length(length0) | bad_length(length1);
    bad |= bad_end(end0, column) | bad_end(end1, column + 1);
    const Two two = parse_two(text + end0, length0, text + end1, length1);
    out[column * stride] = two.first;
    out[(column + 1) * stride] = two.second;
  }
  if (column < columns) {
    const std::uint32_t end = separators[column];
    bad |= bad_length(end - begin) | bad_end(end, column);
    out[column * stride] = parse_two(text + end, end - begin, text + end, end - begin).first;
  }
  return bad;
}

}  // namespace

bool RowScan::supported() noexcept {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0;
}

RowScan::Scanned RowScan::scan(std::string_view text, const Target& target,
                               std::uint64_t last_time) {
  // A row of 16-digit values may be longer than a piece: then the piece is as long as two such
  // rows.
  const std::size_t piece_bytes = std::max(kPieceBytes, 2 * (kMostDigits + 1) * columns_);
  const std::size_t room = std::min(piece_bytes, text.size()) + kUnasked;
  if (separators_.size() < room) separators_.resize(room);
  Scanned scanned;
  while (scanned.rows < target.max_rows) {
    const std::string_view piece = text.substr(scanned.bytes, separators_.size() - kUnasked);
    const std::size_t count = index_separators(piece, separators_.data());
    const std::uint32_t* row = separators_.data();
    const std::uint32_t* const end = row + count;
    const std::size_t rows_before = scanned.rows;
    std::uint32_t begin = 0;
    for (; static_cast<std::size_t>(end - row) >= columns_ && scanned.rows < target.max_rows;
         row += columns_) {
      std::uint64_t* const out = target.words + scanned.rows;
      const std::uint32_t bad = parse_row(piece.data(), begin, row, columns_, out, target.stride);
      if (bad != 0 || *out < last_time) {
        scanned.bytes += begin;
        return scanned;
      }
      last_time = *out;
      begin = row[columns_ - 1] + 1;
      ++scanned.rows;
    }
    scanned.bytes += begin;
    if (scanned.rows == rows_before) break;
  }
  return scanned;
}

}  // namespace kymo::analysis

#else

namespace kymo::analysis {

bool RowScan::supported() noexcept {
  return false;
}
RowScan::Scanned RowScan::scan(std::string_view, const Target&, std::uint64_t) {
  return {};
}

}  // namespace kymo::analysis

#endif
