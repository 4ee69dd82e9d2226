#include "daemon/query.h"

#include <charconv>

namespace kymo::daemon {

Result<std::uint64_t> parse_number(const std::string& text, const std::string& name,
                                   std::uint64_t otherwise, std::uint64_t most) {
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value <= most) return value;
  return Error{Code::invalid_argument,
               name + "=" + text + ": wanted a number from 0 to " + std::to_string(most)};
}

}  // namespace kymo::daemon
