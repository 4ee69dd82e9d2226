#include "lens/analysis/row_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>

#define KYMO_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")))

// GCC 12 warns about values that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace kymo::analysis {
namespace avx512 {
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
alignas(64) constexpr Bytes64 kPlacesInPart = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i % 16);
});
// Indices into eight words of 32 bits. For a byte in part p, kEvenWords has the lowest byte of word
// 2 p, and kOddWords that of word 2 p + 1.
alignas(64) constexpr Bytes64 kEvenWords = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i / 16 * 8);
});
alignas(64) constexpr Bytes64 kOddWords = bytes_by_place([](unsigned i) {
  return static_cast<unsigned char>(i / 16 * 8 + 4);
});

// The operations that row_kernel_loops.inc.h needs. row_kernel_avx2.cc says what each one does.
struct Isa {
  using Text64 = __m512i;
  using Vector = __m512i;
  using Lengths = __m256i;
  static constexpr std::size_t kAtOnce = 8;

  KYMO_TARGET static __m512i table(const Bytes64& bytes) { return _mm512_load_si512(bytes.data()); }

  KYMO_TARGET static Text64 load_text(const char* p) { return _mm512_loadu_si512(p); }
  KYMO_TARGET static Text64 load_text_part(const char* p, std::size_t size) {
    return _mm512_mask_loadu_epi8(_mm512_set1_epi8('0'), (__mmask64{1} << size) - 1, p);
  }
  KYMO_TARGET static std::uint64_t not_digits(Text64 text) {
    const __m512i values = _mm512_sub_epi8(text, _mm512_set1_epi8('0'));
    return _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(9));
  }
  KYMO_TARGET static std::uint64_t equal_to(Text64 text, char byte) {
    return _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(byte));
  }
  KYMO_TARGET static void write_places(std::uint64_t separators, int count, std::uint32_t at,
                                       std::uint32_t* next) {
    const __m512i places = _mm512_maskz_compress_epi8(separators, table(kPlaces));
    const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
    const __m512i first = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places));
    _mm512_storeu_si512(next, _mm512_add_epi32(base, first));
    if (count > 16) [[unlikely]] {  // only if values have fewer than three digits
      alignas(64) Bytes64 all;
      _mm512_store_si512(all.data(), places);
      for (int i = 16; i < count; ++i) next[i] = at + all[static_cast<std::size_t>(i)];
    }
  }

  KYMO_TARGET static Lengths lengths_of(const std::uint32_t* ends) {
    const __m256i here = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ends));
    const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ends - 1));
    return _mm256_add_epi32(_mm256_sub_epi32(here, before), _mm256_set1_epi32(-2));
  }
  KYMO_TARGET static Lengths first_of(Lengths lengths, std::size_t count) {
    return _mm256_maskz_mov_epi32(static_cast<__mmask8>((1U << count) - 1), lengths);
  }
  KYMO_TARGET static Lengths either(Lengths a, Lengths b) { return _mm256_or_si256(a, b); }
  KYMO_TARGET static bool all_below(Lengths lengths, std::uint32_t limit) {
    return _mm256_testz_si256(lengths, _mm256_set1_epi32(~static_cast<int>(limit - 1))) != 0;
  }

  struct Skipped {
    Vector even;
    Vector odd;
  };
  KYMO_TARGET static Skipped skipped(Lengths lengths) {
    const __m512i words = _mm512_castsi256_si512(_mm256_sub_epi32(_mm256_set1_epi32(14), lengths));
    return {_mm512_permutexvar_epi8(table(kEvenWords), words),
            _mm512_permutexvar_epi8(table(kOddWords), words)};
  }
  KYMO_TARGET static Vector digits_after(Vector text, Vector skipped) {
    return _mm512_maskz_sub_epi8(_mm512_cmpgt_epi8_mask(table(kPlacesInPart), skipped), text,
                                 _mm512_set1_epi8('0'));
  }

  KYMO_TARGET static __m128i load_16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  template <typename Address>
  KYMO_TARGET static Vector load_parts(Address address) {
    __m512i four = _mm512_castsi128_si512(load_16(address(0)));
    four = _mm512_inserti32x4(four, load_16(address(1)), 1);
    four = _mm512_inserti32x4(four, load_16(address(2)), 2);
    return _mm512_inserti32x4(four, load_16(address(3)), 3);
  }
  KYMO_TARGET static void store(std::uint64_t* to, Vector numbers) {
    _mm512_storeu_si512(to, numbers);
  }
  KYMO_TARGET static Vector weigh_bytes(Vector bytes, short weights) {
    return _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(weights));
  }
  KYMO_TARGET static Vector weigh_words(Vector words, int weights) {
    return _mm512_madd_epi16(words, _mm512_set1_epi32(weights));
  }
  KYMO_TARGET static Vector weigh_halves(Vector halves, std::uint32_t weight) {
    return _mm512_add_epi64(_mm512_mul_epu32(halves, _mm512_set1_epi64(weight)),
                            _mm512_srli_epi64(halves, 32));
  }
  KYMO_TARGET static Vector pack(Vector even, Vector odd) { return _mm512_packus_epi32(even, odd); }
  KYMO_TARGET static Vector first_of_pairs(Vector even, Vector odd) {
    return _mm512_unpacklo_epi64(even, odd);
  }
  KYMO_TARGET static Vector second_of_pairs(Vector even, Vector odd) {
    return _mm512_unpackhi_epi64(even, odd);
  }
};

#include "lens/analysis/row_kernel_loops.inc.h"

}  // namespace
}  // namespace avx512

const RowKernel kRowKernelAvx512{"avx512", avx512::find_separators, avx512::to_numbers,
                                 avx512::to_columns};

}  // namespace kymo::analysis

#pragma GCC diagnostic pop

#undef KYMO_TARGET
#endif
