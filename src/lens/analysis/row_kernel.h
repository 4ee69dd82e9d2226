#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kymo::analysis {

// The bytes of a piece of text that are not digits.
struct Separators {
  std::size_t count = 0;  // all bytes that are not digits
  std::size_t lines = 0;  // line ends
  bool strange = false;   // whether there is a byte that is neither a line end nor a tab
};

// The three loops of RowScan for one instruction set. Almost no branch depends on the values or
// their lengths, so that the CPU predicts the branches.
struct RowKernel {
  const char* name;
  // Writes the offsets of all bytes of `text` that are not digits. May write up to kUnasked further
  // places after them.
  Separators (*find_separators)(std::string_view text, std::uint32_t* places);
  // Converts the digits between neighbouring `ends` to numbers, beginning with those between
  // ends[-1] and ends[0]. Returns false if a number does not have 1 to kMaxDigits digits; its
  // value is then undefined. Reads the kMaxDigits bytes before each end, also for kUnasked ends
  // after the last one.
  bool (*to_numbers)(const char* text, const std::uint32_t* ends, std::size_t count,
                     std::uint64_t* numbers);
  // Turns rows into columns: number `c` of row `r` goes to out[c * stride + r].
  void (*to_columns)(const std::uint64_t* numbers, std::size_t rows, std::size_t columns,
                     std::uint64_t* out, std::size_t stride);

  static constexpr std::uint32_t kMaxDigits = 16;
  static constexpr std::size_t kUnasked = 16;
};

// The kernels that this machine can run, the fastest first.
std::span<const RowKernel* const> row_kernels();
// The fastest kernel. Null if this machine can run none.
const RowKernel* best_row_kernel();

#if defined(__x86_64__)
// The build is for any x86-64. Only the functions of these kernels use newer instructions.
extern const RowKernel kRowKernelAvx2;
extern const RowKernel kRowKernelAvx512;
#endif

}  // namespace kymo::analysis
