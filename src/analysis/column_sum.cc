#include "analysis/column_sum.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kymo::analysis {
namespace {

struct SumAndFalls {
  std::uint64_t sum = 0;  // modulo 2^64
  std::uint64_t falls = 0;
};

void sum_from(std::size_t i, std::span<const std::uint64_t> values, SumAndFalls& all) {
  for (; i < values.size(); ++i) {
    all.sum += values[i];
    all.falls += values[i] < values[i - 1] ? 1U : 0U;
  }
}

#if defined(__x86_64__)
// AVX2 compares signed numbers. With the highest bit inverted, it compares unsigned ones.
__attribute__((target("avx2"))) void sum_by_four(std::span<const std::uint64_t> values,
                                                 SumAndFalls& all) {
  const auto load = [&](std::size_t i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values.data() + i));
  };
  const __m256i top = _mm256_set1_epi64x(INT64_MIN);
  __m256i sum = _mm256_setzero_si256();
  __m256i falls = _mm256_setzero_si256();
  std::size_t i = 1;
  for (; i + 4 <= values.size(); i += 4) {
    const __m256i here = load(i);
    const __m256i before = load(i - 1);
    sum = _mm256_add_epi64(sum, here);
    const __m256i fell =
        _mm256_cmpgt_epi64(_mm256_xor_si256(before, top), _mm256_xor_si256(here, top));
    falls = _mm256_sub_epi64(falls, fell);
  }
  std::array<std::uint64_t, 4> parts{};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts.data()), sum);
  all.sum += parts[0] + parts[1] + parts[2] + parts[3];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts.data()), falls);
  all.falls += parts[0] + parts[1] + parts[2] + parts[3];
  sum_from(i, values, all);
}
#endif

SumAndFalls sum_and_falls(std::span<const std::uint64_t> values) {
  SumAndFalls all{values.front(), 0};
#if defined(__x86_64__)
  static const bool kByFour = __builtin_cpu_supports("avx2") != 0;
  if (kByFour) {
    sum_by_four(values, all);
    return all;
  }
#endif
  sum_from(1, values, all);
  return all;
}

}  // namespace

ColumnSum sum_of(std::span<const std::uint64_t> values) {
  ColumnSum out;
  if (values.empty()) return out;
  const SumAndFalls all = sum_and_falls(values);
  out.values = values.size();
  out.first = values.front();
  out.last = values.back();
  out.falls = all.falls;
  if (all.falls == 0) {
    out.min = out.first;
    out.max = out.last;
  } else {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    out.min = *min;
    out.max = *max;
  }
  out.sum = all.sum;
  if (out.max > UINT64_MAX / values.size()) {  // the sum may exceed 2^64
    std::uint64_t sum = 0;
    for (const std::uint64_t value : values) {
      out.sum_high += __builtin_add_overflow(sum, value, &sum) ? 1U : 0U;
    }
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
  sum_high += next.sum_high + (__builtin_add_overflow(sum, next.sum, &sum) ? 1U : 0U);
}

}  // namespace kymo::analysis
