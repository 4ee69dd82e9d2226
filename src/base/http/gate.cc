#include "base/http/gate.h"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace kymo::http {

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int change = static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    different |= static_cast<unsigned>(change);
  }
  return different == 0;
}

bool is_host(std::string_view header) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kInAddress = "0123456789abcdefABCDEF:.";
  constexpr std::string_view kInName =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~";
  const bool bracket = header.starts_with('[');
  if (bracket) header.remove_prefix(1);
  // The end of the name or address.
  const std::size_t end =
      std::min(header.find_first_not_of(bracket ? kInAddress : kInName), header.size());
  std::string_view port = header.substr(end);
  if (bracket) {
    if (!port.starts_with(']')) return false;
    port.remove_prefix(1);
  }
  if (port.empty()) return true;
  if (port.front() != ':') return false;
  port.remove_prefix(1);
  if (port.find_first_not_of(kDigits) != std::string_view::npos) return false;
  std::uint16_t number = 0;  // a port that does not fit is refused
  return port.empty() ||
         std::from_chars(port.data(), port.data() + port.size(), number).ec == std::errc();
}

std::string host_of(std::string_view header) {
  if (!header.empty() && header.front() == '[') {
    return std::string(header.substr(1, header.find(']') - 1));
  }
  return std::string(header.substr(0, header.find(':')));
}

bool is_loopback(const std::string& host) {
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24U) == 127;
  return host == "::1" || strcasecmp(host.c_str(), "localhost") == 0;
}

bool Gate::is_ours(const std::string& host) const {
  const auto is = [&](const std::string& name) {
    return !name.empty() && strcasecmp(host.c_str(), name.c_str()) == 0;
  };
  return is_loopback(host) || is(bound_) || is(name_);
}

std::optional<Gate::Refusal> Gate::refuse_open(const std::string& host) const {
  if (!is_loopback(bound_) || is_ours(host_of(host))) return std::nullopt;
  return Refusal{403, "this port is served only under the name localhost"};
}

std::optional<Gate::Refusal> Gate::refuse(const Credentials& credentials) const {
  if (!is_ours(host_of(credentials.host))) {
    return Refusal{403,
                   "this host name is not allowed: use localhost, or start kymod with --http-name"};
  }
  const bool same_origin =
      strcasecmp(credentials.origin.c_str(), ("http://" + credentials.host).c_str()) == 0;
  if (!credentials.origin.empty() && !same_origin) {
    return Refusal{403, "the request comes from a page of another origin"};
  }
  if (credentials.token.empty()) {
    return Refusal{401, "a token is needed: kymo web prints the address with it"};
  }
  if (token_.empty() || !same_secret(credentials.token, token_)) {
    return Refusal{401, "the token is wrong: kymo web prints the address with it"};
  }
  if (credentials.changes_state && credentials.origin.empty()) {
    return Refusal{403,
                   "a request that changes something needs the header Origin with this address"};
  }
  return std::nullopt;
}

}  // namespace kymo::http
