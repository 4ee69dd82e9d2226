#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kymo::report {

// How far something has come, for one line on a terminal.
struct ProgressLine {
  std::string what;   // "dump churn"
  std::string phase;  // "memory"
  std::uint64_t done_bytes = 0;
  std::optional<std::uint64_t> total_bytes;  // none: not known
  std::uint64_t bytes_per_second = 0;
  std::optional<std::uint64_t> remaining_ns;  // none: not known
  std::uint64_t elapsed_ns = 0;
};

// The line, at most `width` characters of ASCII: with a bar where there is room for one and the
// total is known; the rate, then the sizes, then the phase give way on a narrow one.
std::string progress_line(const ProgressLine& progress, std::size_t width);

}  // namespace kymo::report
