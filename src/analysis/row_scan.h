#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kymo::analysis {

// Parses rows of numbers 64 bytes at a time: finds the places of all separators of a piece of text
// first, then turns two values at once from 16 digits each into integers, without a branch that
// depends on the data. Knows nothing of damage: it stops before the first line that is not plain,
// and whoever called it looks at that one more closely.
//
// Threads: one at a time. Cost: an index of 4 bytes a separator of 16 KiB of text, made at the
// first scan.
class RowScan {
 public:
  // Whether this machine has the instructions (AVX2, BMI).
  static bool supported() noexcept;

  // `columns` counts the time as one.
  explicit RowScan(std::size_t columns) : columns_(columns) {}

  // Where rows go: value `i` of a row to words[i * stride + row].
  struct Target {
    std::uint64_t* words = nullptr;
    std::size_t stride = 0;
    std::size_t max_rows = 0;
  };
  struct Scanned {
    std::size_t bytes = 0;
    std::size_t rows = 0;
  };
  // Parses lines from the beginning of `text` until one is not `columns` numbers of 1 to 16 digits
  // with a tab between them, its time is below that of the row before (`last_time` for the first),
  // `text` ends in it, or there are `max_rows`. The kMargin bytes before `text` must be readable.
  Scanned scan(std::string_view text, const Target& target, std::uint64_t last_time);

  static constexpr std::size_t kMargin = 16;

 private:
  std::size_t columns_;
  std::vector<std::uint32_t> separators_;  // places in the piece of text
};

}  // namespace kymo::analysis
