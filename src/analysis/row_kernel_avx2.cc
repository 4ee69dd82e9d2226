#include "analysis/row_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define KYMO_AVX2 __attribute__((target("avx2,bmi,popcnt")))

namespace kymo::analysis {
namespace {

KYMO_AVX2 inline __m256i bytes_32(const char* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

KYMO_AVX2 inline std::uint32_t mask_32(__m256i bytes) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
}

struct Kinds32 {
  std::uint32_t separators = 0;
  std::uint32_t lines = 0;
  std::uint32_t strange = 0;
};

KYMO_AVX2 inline Kinds32 kinds_of(const char* p) {
  const __m256i text = bytes_32(p);
  const __m256i values = _mm256_sub_epi8(text, _mm256_set1_epi8('0'));
  const __m256i digits = _mm256_cmpeq_epi8(_mm256_min_epu8(values, _mm256_set1_epi8(9)), values);
  const __m256i lines = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('\n'));
  const __m256i tabs = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('\t'));
  const __m256i known = _mm256_or_si256(digits, _mm256_or_si256(lines, tabs));
  return {~mask_32(digits), mask_32(lines), ~mask_32(known)};
}

KYMO_AVX2 Separators find_separators_avx2(std::string_view text, std::uint32_t* places) {
  std::uint32_t* next = places;
  std::uint64_t strange = 0;
  Separators found;
  std::uint32_t at = 0;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (; at + 64 <= size; at += 64) {
    const Kinds32 low = kinds_of(text.data() + at);
    const Kinds32 high = kinds_of(text.data() + at + 32);
    std::uint64_t mask = low.separators | std::uint64_t{high.separators} << 32U;
    strange |= low.strange | high.strange;
    found.lines += static_cast<std::size_t>(
        __builtin_popcountll(low.lines | std::uint64_t{high.lines} << 32U));
    const int count = __builtin_popcountll(mask);
    // With values of 6 to 12 digits, 64 bytes hold up to nine separators. Eight are always written,
    // even if there are fewer, so that this loop has no branch that depends on the data.
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
    const char c = text[at];
    if (c >= '0' && c <= '9') continue;
    *next++ = at;
    found.lines += c == '\n' ? 1U : 0U;
    strange |= c == '\n' || c == '\t' ? 0U : 1U;
  }
  found.count = static_cast<std::size_t>(next - places);
  found.strange = strange != 0;
  return found;
}

// Loads the 16 bytes before each of the two places.
KYMO_AVX2 inline __m256i before_two(const char* text, std::uint32_t first, std::uint32_t second) {
  const auto* low = reinterpret_cast<const __m128i*>(text + first - 16);
  const auto* high = reinterpret_cast<const __m128i*>(text + second - 16);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                 _mm_loadu_si128(high), 1);
}

// Converts digits to numbers of four digits. In each half, only the digits after index `skipped`
// count; the others are 0.
KYMO_AVX2 inline __m256i fours_of(__m256i text, __m256i skipped) {
  const __m256i place = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m256i keep = _mm256_cmpgt_epi8(place, skipped);
  const __m256i digits = _mm256_and_si256(_mm256_sub_epi8(text, _mm256_set1_epi8('0')), keep);
  const __m256i pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));  // 10 a + b
  return _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00010064));                 // 100 a + b
}

// The lengths of four numbers in digits, minus one. A number without digits has 2^32 - 1.
KYMO_AVX2 inline __m128i lengths_of_four(const std::uint32_t* ends) {
  const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ends));
  const __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ends - 1));
  return _mm_add_epi32(_mm_sub_epi32(here, before), _mm_set1_epi32(-2));
}

KYMO_AVX2 inline void four_to_numbers(const char* text, const std::uint32_t* ends, __m128i lengths,
                                      std::uint64_t* numbers) {
  const __m256i skipped = _mm256_broadcastsi128_si256(_mm_sub_epi32(_mm_set1_epi32(14), lengths));
  const __m256i even = _mm256_setr_epi64x(0, 0, 0x0808080808080808, 0x0808080808080808);
  const __m256i odd = _mm256_or_si256(even, _mm256_set1_epi8(4));
  const __m256i x0 =
      fours_of(before_two(text, ends[0], ends[2]), _mm256_shuffle_epi8(skipped, even));
  const __m256i x1 =
      fours_of(before_two(text, ends[1], ends[3]), _mm256_shuffle_epi8(skipped, odd));
  const __m256i eights = _mm256_madd_epi16(_mm256_packus_epi32(x0, x1),
                                           _mm256_set1_epi32(0x00012710));  // 10000 a + b
  const __m256i upper = _mm256_mul_epu32(eights, _mm256_set1_epi64x(100'000'000));
  const __m256i all = _mm256_add_epi64(upper, _mm256_srli_epi64(eights, 32));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(numbers), all);
}

KYMO_AVX2 bool to_numbers_avx2(const char* text, const std::uint32_t* ends, std::size_t count,
                               std::uint64_t* numbers) {
  __m128i lengths = _mm_setzero_si128();
  std::uint32_t rest = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m128i here = lengths_of_four(ends + i);
    lengths = _mm_or_si128(lengths, here);
    four_to_numbers(text, ends + i, here, numbers + i);
  }
  if (i < count) four_to_numbers(text, ends + i, lengths_of_four(ends + i), numbers + i);
  for (; i < count; ++i) rest |= ends[i] - (ends + i)[-1] - 2;
  const auto most = static_cast<int>(RowKernel::kMostDigits - 1);
  const bool good = _mm_testz_si128(lengths, _mm_set1_epi32(~most)) != 0;
  return good && (rest & ~static_cast<std::uint32_t>(most)) == 0;
}

// Loads two numbers from each of two rows.
KYMO_AVX2 inline __m256i two_rows(const std::uint64_t* first, const std::uint64_t* second) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

KYMO_AVX2 void to_columns_avx2(const std::uint64_t* numbers, std::size_t rows, std::size_t columns,
                               std::uint64_t* out, std::size_t stride) {
  const auto store = [](std::uint64_t* to, __m256i four)
                         KYMO_AVX2 { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), four); };
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const std::uint64_t* const from = numbers + row * columns;
    std::size_t c = 0;
    for (; c + 2 <= columns; c += 2) {
      const std::uint64_t* const here = from + c;
      const __m256i even = two_rows(here, here + 2 * columns);
      const __m256i odd = two_rows(here + columns, here + 3 * columns);
      store(out + c * stride + row, _mm256_unpacklo_epi64(even, odd));
      store(out + (c + 1) * stride + row, _mm256_unpackhi_epi64(even, odd));
    }
    for (std::size_t r = 0; r < 4 && c < columns; ++r) {
      out[c * stride + row + r] = from[r * columns + c];
    }
  }
  for (; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) out[c * stride + row] = numbers[row * columns + c];
  }
}

}  // namespace

const RowKernel kRowKernelAvx2{"avx2", find_separators_avx2, to_numbers_avx2, to_columns_avx2};

}  // namespace kymo::analysis

#endif
