#include "lens/analysis/row_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>

#define KYMO_TARGET __attribute__((target("avx2,bmi,popcnt")))

namespace kymo::analysis {
namespace avx2 {
namespace {

// The operations that row_kernel_loops.inc.h needs.
struct Isa {
  using Vector = __m256i;
  using Lengths = __m128i;
  static constexpr std::size_t kAtOnce = 4;

  struct Text64 {
    __m256i low;
    __m256i high;
  };

  KYMO_TARGET static Text64 load_text(const char* p) {
    const auto* halves = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
  }
  // Loads fewer than 64 bytes. The rest are digits.
  KYMO_TARGET static Text64 load_text_part(const char* p, std::size_t size) {
    std::array<char, 64> bytes;
    bytes.fill('0');
    std::memcpy(bytes.data(), p, size);
    return load_text(bytes.data());
  }
  KYMO_TARGET static std::uint64_t mask_of(__m256i low, __m256i high) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
           std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32U;
  }
  KYMO_TARGET static __m256i digits_in(__m256i text) {
    const __m256i values = _mm256_sub_epi8(text, _mm256_set1_epi8('0'));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(values, _mm256_set1_epi8(9)), values);
  }
  KYMO_TARGET static std::uint64_t not_digits(const Text64& text) {
    return ~mask_of(digits_in(text.low), digits_in(text.high));
  }
  KYMO_TARGET static std::uint64_t equal_to(const Text64& text, char byte) {
    const __m256i all = _mm256_set1_epi8(byte);
    return mask_of(_mm256_cmpeq_epi8(text.low, all), _mm256_cmpeq_epi8(text.high, all));
  }
  KYMO_TARGET static void write_places(std::uint64_t separators, int count, std::uint32_t at,
                                       std::uint32_t* next) {
    // With values of 6 to 12 digits, 64 bytes hold up to nine separators. Eight are always written,
    // even if there are fewer, so that this loop has no branch that depends on the data.
    for (int i = 0; i < 8; ++i) {
      next[i] = at + static_cast<std::uint32_t>(_tzcnt_u64(separators));
      separators = _blsr_u64(separators);
    }
    for (int i = 8; i < count; ++i) {
      next[i] = at + static_cast<std::uint32_t>(_tzcnt_u64(separators));
      separators = _blsr_u64(separators);
    }
  }

  // The lengths of numbers in digits, minus one. A number without digits has 2^32 - 1.
  KYMO_TARGET static Lengths lengths_of(const std::uint32_t* ends) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ends));
    const __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ends - 1));
    return _mm_add_epi32(_mm_sub_epi32(here, before), _mm_set1_epi32(-2));
  }
  // The first `count` of `lengths`, and 0 for the others.
  KYMO_TARGET static Lengths first_of(Lengths lengths, std::size_t count) {
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(count));
    return _mm_and_si128(lengths, _mm_cmpgt_epi32(wanted, _mm_setr_epi32(0, 1, 2, 3)));
  }
  KYMO_TARGET static Lengths either(Lengths a, Lengths b) { return _mm_or_si128(a, b); }
  // Precondition: `limit` is a power of two.
  KYMO_TARGET static bool all_below(Lengths lengths, std::uint32_t limit) {
    return _mm_testz_si128(lengths, _mm_set1_epi32(~static_cast<int>(limit - 1))) != 0;
  }

  // In each byte, the index of the last byte of its part that is no digit of the number.
  struct Skipped {
    Vector even;
    Vector odd;
  };
  KYMO_TARGET static Skipped skipped(Lengths lengths) {
    const __m256i words = _mm256_broadcastsi128_si256(_mm_sub_epi32(_mm_set1_epi32(14), lengths));
    const __m256i even = _mm256_setr_epi64x(0, 0, 0x0808080808080808, 0x0808080808080808);
    const __m256i odd = _mm256_or_si256(even, _mm256_set1_epi8(4));
    return {_mm256_shuffle_epi8(words, even), _mm256_shuffle_epi8(words, odd)};
  }
  // The values of the digits behind `skipped`, and 0 for the others.
  KYMO_TARGET static Vector digits_after(Vector text, Vector skipped) {
    const __m256i place = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm256_and_si256(_mm256_sub_epi8(text, _mm256_set1_epi8('0')),
                            _mm256_cmpgt_epi8(place, skipped));
  }

  KYMO_TARGET static __m128i load_16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  // Part i comes from address(i).
  template <typename Address>
  KYMO_TARGET static Vector load_parts(Address address) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(address(0))), load_16(address(1)),
                                   1);
  }
  KYMO_TARGET static void store(std::uint64_t* to, Vector numbers) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), numbers);
  }
  // Neighbours, each times its weight, are added to a number of twice their width. The lower part
  // of `weights` is that of the first one.
  KYMO_TARGET static Vector weigh_bytes(Vector bytes, short weights) {
    return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(weights));
  }
  KYMO_TARGET static Vector weigh_words(Vector words, int weights) {
    return _mm256_madd_epi16(words, _mm256_set1_epi32(weights));
  }
  // The same, where the second weight is 1.
  KYMO_TARGET static Vector weigh_halves(Vector halves, std::uint32_t weight) {
    return _mm256_add_epi64(_mm256_mul_epu32(halves, _mm256_set1_epi64x(weight)),
                            _mm256_srli_epi64(halves, 32));
  }
  // In each part, the words of `even` and then those of `odd`, at half their width.
  KYMO_TARGET static Vector pack(Vector even, Vector odd) { return _mm256_packus_epi32(even, odd); }
  // From each part, its first or second number: of `even` and of `odd` in turn.
  KYMO_TARGET static Vector first_of_pairs(Vector even, Vector odd) {
    return _mm256_unpacklo_epi64(even, odd);
  }
  KYMO_TARGET static Vector second_of_pairs(Vector even, Vector odd) {
    return _mm256_unpackhi_epi64(even, odd);
  }
};

#include "lens/analysis/row_kernel_loops.inc.h"

}  // namespace
}  // namespace avx2

const RowKernel kRowKernelAvx2{"avx2", avx2::find_separators, avx2::to_numbers, avx2::to_columns};

}  // namespace kymo::analysis

#undef KYMO_TARGET
#endif
