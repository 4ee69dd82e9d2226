#include "http/library.h"

#include <strings.h>

#include <algorithm>
#include <array>

namespace kymo::http {
namespace {

constexpr std::array<std::string_view, 4> kLeftOut = {"Range", "Accept-Encoding",
                                                      "Content-Encoding", "Content-Length"};
constexpr std::string_view kEndOfLine = "\r\n";

bool is_left_out(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [name](std::string_view one) {
    return name.size() == one.size() && strncasecmp(name.data(), one.data(), one.size()) == 0;
  });
}

}  // namespace

std::string head_for_library(std::string_view request) {
  std::string head;
  while (!request.empty()) {
    const std::size_t end = std::min(request.find(kEndOfLine), request.size());
    const std::string_view line = request.substr(0, end);
    request.remove_prefix(std::min(end + kEndOfLine.size(), request.size()));
    if (is_left_out(line)) continue;
    head.append(line).append(kEndOfLine);
    if (line.empty()) break;
  }
  return head;
}

}  // namespace kymo::http
