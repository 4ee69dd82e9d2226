#include "report/short_reason.h"

#include <algorithm>

#include "report/human.h"

namespace kymo::report {

std::string short_reason(std::string_view error) {
  constexpr std::size_t kMost = 80;
  // Only the first line, and without the advice.
  error = error.substr(0, std::min(error.find('\n'), error.size()));
  if (error.size() > kMost) error = error.substr(0, std::min(error.find("; "), error.size()));
  // Drops what was tried, part by part, until the rest fits.
  while (error.size() > kMost) {
    const std::size_t colon = error.find(": ");
    if (colon == std::string_view::npos) break;
    error.remove_prefix(colon + 2);
  }
  return shortened(printable(error), kMost);
}

}  // namespace kymo::report
