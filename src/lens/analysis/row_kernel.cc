#include "lens/analysis/row_kernel.h"

#include <vector>

namespace kymo::analysis {
namespace {

std::vector<const RowKernel*> find_row_kernels() {
  std::vector<const RowKernel*> found;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                    __builtin_cpu_supports("popcnt") != 0;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vbmi") != 0 &&
      __builtin_cpu_supports("avx512vbmi2") != 0;
  if (avx2 && avx512) found.push_back(&kRowKernelAvx512);
  if (avx2) found.push_back(&kRowKernelAvx2);
#endif
  return found;
}

}  // namespace

std::span<const RowKernel* const> row_kernels() {
  static const std::vector<const RowKernel*> kFound = find_row_kernels();
  return kFound;
}

const RowKernel* best_row_kernel() {
  const std::span<const RowKernel* const> kernels = row_kernels();
  return kernels.empty() ? nullptr : kernels.front();
}

}  // namespace kymo::analysis
