#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kymo::analysis {

// What stands in a piece of text besides digits.
struct Separators {
  std::size_t count = 0;  // bytes that are no digit
  std::size_t lines = 0;  // line ends among them
  bool strange = false;   // some are neither that nor a tab
};

// The three loops of RowScan for one set of instructions. They look at no value and no length to
// decide where to go on, so that no branch depends on the data.
struct RowKernel {
  const char* name;
  // Writes the place of every byte of `text` that is no digit; kUnasked places more may be
  // written.
  Separators (*find_separators)(std::string_view text, std::uint32_t* places);
  // Makes numbers of the digits between each two neighbours of `ends`, beginning at those between
  // ends[-1] and ends[0]. False: some have not 1 to kMostDigits digits; they come out as anything.
  // Reads kMostDigits bytes before any place, also before that of kUnasked ends behind the last.
  bool (*to_numbers)(const char* text, const std::uint32_t* ends, std::size_t count,
                     std::uint64_t* numbers);
  // Turns rows into columns: number `c` of row `r` goes to out[c * stride + r].
  void (*to_columns)(const std::uint64_t* numbers, std::size_t rows, std::size_t columns,
                     std::uint64_t* out, std::size_t stride);

  static constexpr std::uint32_t kMostDigits = 16;
  static constexpr std::size_t kUnasked = 16;
};

// Those that this machine can run, the fastest first.
std::span<const RowKernel* const> row_kernels();
// The fastest; null: there is none.
const RowKernel* best_row_kernel();

#if defined(__x86_64__)
// The build's own flags stay those of any x86-64: the functions of these alone use more.
extern const RowKernel kRowKernelAvx2;
extern const RowKernel kRowKernelAvx512;
#endif

}  // namespace kymo::analysis
