#include "recordings/share_option.h"

#include <CLI/CLI.hpp>
#include <charconv>

namespace kymo::cli {

double parse_share(const std::string& option, const std::string& text) {
  const char* const end = text.data() + text.size() - (!text.empty() && text.back() == '%' ? 1 : 0);
  double percent = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  constexpr double kMax = 1e6;
  if (error != std::errc() || stop != end || !(percent >= 0 && percent <= kMax)) {
    throw CLI::ValidationError(
        option, "'" + text + "' is not a percentage: give a number of at least 0, such as 20%");
  }
  return percent / 100;
}

}  // namespace kymo::cli
