#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kymo::report {

// The progress of a request, for one line on a terminal.
struct ProgressLine {
  std::string what;   // "dump churn"
  std::string phase;  // "memory"
  std::uint64_t done_bytes = 0;
  std::optional<std::uint64_t> total_bytes;  // none: not known
  std::uint64_t bytes_per_second = 0;
  std::optional<std::uint64_t> remaining_ns;  // none: not known
  std::uint64_t elapsed_ns = 0;
};

// The line, at most `width` characters of ASCII. It has a bar if there is room and the total is
// known. If the line is too long, the rate is left out first, then the sizes, then the phase.
std::string progress_line(const ProgressLine& progress, std::size_t width);

}  // namespace kymo::report
