#include "analysis/row_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>

#define KYMO_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")))

// GCC 12 warns about values that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace kymo::analysis {
namespace {

using Bytes64 = std::array<unsigned char, 64>;

constexpr Bytes64 bytes_by_place(unsigned char (*byte)(unsigned place)) {
  Bytes64 bytes{};
  for (unsigned i = 0; i < bytes.size(); ++i) bytes.at(i) = byte(i);
  return bytes;
}
alignas(64) constexpr Bytes64 kPlaces = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i);
});
alignas(64) constexpr Bytes64 kPlacesInQuarter = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i % 16);
});
// Indices into eight words of 32 bits. For a byte in quarter q, kEvenWords has the lowest byte of
// word 2 q, and kOddWords that of word 2 q + 1.
alignas(64) constexpr Bytes64 kEvenWords = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i / 16 * 8);
});
alignas(64) constexpr Bytes64 kOddWords = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i / 16 * 8 + 4);
});

KYMO_AVX512 inline __m512i table(const Bytes64& bytes) {
  return _mm512_load_si512(bytes.data());
}

// The state of find_separators_avx512() between blocks of 64 bytes.
struct Finding {
  std::uint32_t* next;
  std::size_t lines = 0;
  __mmask64 strange = 0;
};

KYMO_AVX512 inline void find_in_64(__m512i text, __mmask64 there, std::uint32_t at,
                                   Finding& finding) {
  const __m512i values = _mm512_sub_epi8(text, _mm512_set1_epi8('0'));
  const __mmask64 separators = _mm512_mask_cmpgt_epu8_mask(there, values, _mm512_set1_epi8(9));
  const __mmask64 lines = _mm512_mask_cmpeq_epi8_mask(separators, text, _mm512_set1_epi8('\n'));
  // A tab is 9, a line end 10.
  static_assert('\n' == '\t' + 1);
  finding.strange |= _mm512_mask_cmpgt_epu8_mask(
      separators, _mm512_sub_epi8(text, _mm512_set1_epi8('\t')), _mm512_set1_epi8(1));
  finding.lines += static_cast<std::size_t>(__builtin_popcountll(lines));
  const int count = __builtin_popcountll(separators);
  const __m512i places = _mm512_maskz_compress_epi8(separators, table(kPlaces));
  const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
  _mm512_storeu_si512(finding.next,
                      _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places))));
  if (count > 16) [[unlikely]] {  // only if values have fewer than three digits
    alignas(64) Bytes64 all;
    _mm512_store_si512(all.data(), places);
    for (int i = 16; i < count; ++i) finding.next[i] = at + all[static_cast<std::size_t>(i)];
  }
  finding.next += count;
}

KYMO_AVX512 Separators find_separators_avx512(std::string_view text, std::uint32_t* places) {
  Finding finding{places};
  std::size_t at = 0;
  for (; at + 64 <= text.size(); at += 64) {
    find_in_64(_mm512_loadu_si512(text.data() + at), ~__mmask64{0}, static_cast<std::uint32_t>(at),
               finding);
  }
  if (at < text.size()) {
    const __mmask64 there = (__mmask64{1} << (text.size() - at)) - 1;
    find_in_64(_mm512_maskz_loadu_epi8(there, text.data() + at), there,
               static_cast<std::uint32_t>(at), finding);
  }
  return {static_cast<std::size_t>(finding.next - places), finding.lines, finding.strange != 0};
}

// Loads the 16 bytes before each of four places: every second one of `ends`.
KYMO_AVX512 inline __m512i before_four(const char* text, const std::uint32_t* ends) {
  const auto load = [text](std::uint32_t end) KYMO_AVX512 {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + end - 16));
  };
  __m512i four = _mm512_castsi128_si512(load(ends[0]));
  four = _mm512_inserti32x4(four, load(ends[2]), 1);
  four = _mm512_inserti32x4(four, load(ends[4]), 2);
  return _mm512_inserti32x4(four, load(ends[6]), 3);
}

// Converts digits to numbers of four digits. In each quarter, only the digits from index `skipped`
// on count; the others are 0.
KYMO_AVX512 inline __m512i fours_of_512(__m512i text, __m512i skipped) {
  const __mmask64 keep = _mm512_cmpge_epu8_mask(table(kPlacesInQuarter), skipped);
  const __m512i digits = _mm512_maskz_sub_epi8(keep, text, _mm512_set1_epi8('0'));
  const __m512i pairs = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));  // 10 a + b
  return _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x00010064));                 // 100 a + b
}

// The lengths of eight numbers in digits, minus one. A number without digits has 2^32 - 1.
KYMO_AVX512 inline __m256i lengths_of_eight(const std::uint32_t* ends) {
  const __m256i here = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ends));
  const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ends - 1));
  return _mm256_add_epi32(_mm256_sub_epi32(here, before), _mm256_set1_epi32(-2));
}

KYMO_AVX512 inline void eight_to_numbers(const char* text, const std::uint32_t* ends,
                                         __m256i lengths, std::uint64_t* numbers) {
  const __m512i skipped = _mm512_castsi256_si512(_mm256_sub_epi32(_mm256_set1_epi32(15), lengths));
  const __m512i even =
      fours_of_512(before_four(text, ends), _mm512_permutexvar_epi8(table(kEvenWords), skipped));
  const __m512i odd =
      fours_of_512(before_four(text, ends + 1), _mm512_permutexvar_epi8(table(kOddWords), skipped));
  const __m512i eights = _mm512_madd_epi16(_mm512_packus_epi32(even, odd),
                                           _mm512_set1_epi32(0x00012710));  // 10000 a + b
  const __m512i upper = _mm512_mul_epu32(eights, _mm512_set1_epi64(100'000'000));
  _mm512_storeu_si512(numbers, _mm512_add_epi64(upper, _mm512_srli_epi64(eights, 32)));
}

KYMO_AVX512 bool to_numbers_avx512(const char* text, const std::uint32_t* ends, std::size_t count,
                                   std::uint64_t* numbers) {
  __m256i lengths = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i here = lengths_of_eight(ends + i);
    lengths = _mm256_or_si256(lengths, here);
    eight_to_numbers(text, ends + i, here, numbers + i);
  }
  if (i < count) {
    const auto wanted = static_cast<__mmask8>((1U << (count - i)) - 1);
    const __m256i here = lengths_of_eight(ends + i);
    lengths = _mm256_mask_or_epi32(lengths, wanted, lengths, here);
    eight_to_numbers(text, ends + i, here, numbers + i);
  }
  const auto most = static_cast<int>(RowKernel::kMostDigits - 1);
  return _mm256_testz_si256(lengths, _mm256_set1_epi32(~most)) != 0;
}

// Loads two numbers from each of four rows: every second row from `first` on.
KYMO_AVX512 inline __m512i four_rows(const std::uint64_t* first, std::size_t columns) {
  const auto load = [first, columns](std::size_t row) KYMO_AVX512 {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + row * columns));
  };
  __m512i four = _mm512_castsi128_si512(load(0));
  four = _mm512_inserti32x4(four, load(2), 1);
  four = _mm512_inserti32x4(four, load(4), 2);
  return _mm512_inserti32x4(four, load(6), 3);
}

KYMO_AVX512 void to_columns_avx512(const std::uint64_t* numbers, std::size_t rows,
                                   std::size_t columns, std::uint64_t* out, std::size_t stride) {
  std::size_t row = 0;
  for (; row + 8 <= rows; row += 8) {
    const std::uint64_t* const from = numbers + row * columns;
    std::size_t c = 0;
    for (; c + 2 <= columns; c += 2) {
      const __m512i even = four_rows(from + c, columns);
      const __m512i odd = four_rows(from + columns + c, columns);
      _mm512_storeu_si512(out + c * stride + row, _mm512_unpacklo_epi64(even, odd));
      _mm512_storeu_si512(out + (c + 1) * stride + row, _mm512_unpackhi_epi64(even, odd));
    }
    for (std::size_t r = 0; r < 8 && c < columns; ++r) {
      out[c * stride + row + r] = from[r * columns + c];
    }
  }
  for (; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) out[c * stride + row] = numbers[row * columns + c];
  }
}

}  // namespace

const RowKernel kRowKernelAvx512{"avx512", find_separators_avx512, to_numbers_avx512,
                                 to_columns_avx512};

}  // namespace kymo::analysis

#pragma GCC diagnostic pop

#endif
