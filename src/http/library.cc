#include "http/library.h"

#include <strings.h>

#include <algorithm>

namespace kymo::http {

std::string without_header(const std::string& request, std::string_view name) {
  std::string out;
  const std::size_t head = std::min(request.find("\r\n\r\n"), request.size());
  for (std::size_t at = 0; at < head;) {
    const std::size_t end = std::min(request.find("\r\n", at), head);
    const bool is_it = end - at > name.size() && request[at + name.size()] == ':' &&
                       strncasecmp(request.data() + at, name.data(), name.size()) == 0;
    if (!is_it) out.append(request, at, end + 2 - at);
    at = end + 2;
  }
  return out.append(request, std::min(head + 2, request.size()));
}

}  // namespace kymo::http
