#include "lens/analysis/column_sum.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kymo::analysis {
namespace {

std::uint64_t falls_from(std::size_t i, std::span<const std::uint64_t> values) {
  std::uint64_t falls = 0;
  for (; i < values.size(); ++i) falls += values[i] < values[i - 1] ? 1U : 0U;
  return falls;
}

#if defined(__x86_64__)
// AVX2 compares signed numbers. With the highest bit inverted, it compares unsigned ones.
__attribute__((target("avx2"))) std::uint64_t falls_by_four(std::span<const std::uint64_t> values) {
  const auto load = [&](std::size_t i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values.data() + i));
  };
  const __m256i top = _mm256_set1_epi64x(INT64_MIN);
  __m256i falls = _mm256_setzero_si256();
  std::size_t i = 1;
  for (; i + 4 <= values.size(); i += 4) {
    const __m256i here = load(i);
    const __m256i before = load(i - 1);
    const __m256i fell =
        _mm256_cmpgt_epi64(_mm256_xor_si256(before, top), _mm256_xor_si256(here, top));
    falls = _mm256_sub_epi64(falls, fell);
  }
  std::array<std::uint64_t, 4> parts{};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts.data()), falls);
  return parts[0] + parts[1] + parts[2] + parts[3] + falls_from(i, values);
}
#endif

std::uint64_t falls_in(std::span<const std::uint64_t> values) {
#if defined(__x86_64__)
  static const bool kByFour = __builtin_cpu_supports("avx2") != 0;
  if (kByFour) return falls_by_four(values);
#endif
  return falls_from(1, values);
}

}  // namespace

ColumnSum sum_of(std::span<const std::uint64_t> values) {
  ColumnSum out;
  if (values.empty()) return out;
  out.values = values.size();
  out.first = values.front();
  out.last = values.back();
  out.falls = falls_in(values);
  if (out.falls == 0) {
    out.min = out.first;
    out.max = out.last;
  } else {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    out.min = *min;
    out.max = *max;
  }
  return out;
}

void ColumnSum::add(const ColumnSum& next) {
  if (next.values == 0) return;
  if (values == 0) {
    *this = next;
    return;
  }
  falls += next.falls + (next.first < last ? 1 : 0);
  values += next.values;
  last = next.last;
  min = std::min(min, next.min);
  max = std::max(max, next.max);
}

}  // namespace kymo::analysis
