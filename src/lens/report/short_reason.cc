#include "lens/report/short_reason.h"

#include <algorithm>
#include <string>

#include "lens/report/human.h"

namespace kymo::report {
namespace {

// Removes the text in parentheses, if all parentheses are closed.
std::string without_asides(std::string_view text) {
  std::string plain;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '(' && depth++ == 0 && plain.ends_with(' ')) plain.pop_back();
    if (depth == 0) plain += letter;
    if (letter == ')' && depth > 0) --depth;
  }
  return depth == 0 ? plain : std::string(text);
}

}  // namespace

std::string short_reason(std::string_view error) {
  constexpr std::size_t kMax = 80;
  // Keep only the first line. If it is too long, drop the text in parentheses and the advice.
  error = error.substr(0, std::min(error.find('\n'), error.size()));
  std::string plain;
  if (error.size() > kMax) {
    const bool explained = error.find("(failure ") != std::string_view::npos;
    plain = without_asides(error);
    error = plain;
    error = error.substr(0, std::min(error.find(explained ? ". " : "; "), error.size()));
  }
  // Drop the parts before the cause, one by one, until the rest fits.
  while (error.size() > kMax) {
    const std::size_t colon = error.find(": ");
    if (colon == std::string_view::npos) break;
    error.remove_prefix(colon + 2);
  }
  return shortened(printable(error), kMax);
}

}  // namespace kymo::report
