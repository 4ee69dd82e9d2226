#include "http/gate.h"

#include <arpa/inet.h>
#include <strings.h>

#include <cstddef>

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
  return Refusal{403, "this port is served for localhost alone"};
}

std::optional<Gate::Refusal> Gate::refuse(const Knock& knock) const {
  if (!is_ours(host_of(knock.host))) {
    return Refusal{403,
                   "this host has another name here: use localhost, or start with --http-name"};
  }
  const bool same_origin = strcasecmp(knock.origin.c_str(), ("http://" + knock.host).c_str()) == 0;
  if (!knock.origin.empty() && !same_origin) {
    return Refusal{403, "asked for by a page of another origin"};
  }
  if (knock.token.empty()) {
    return Refusal{401, "a token is needed: kymo web prints the address with it"};
  }
  if (token_.empty() || !same_secret(knock.token, token_)) {
    return Refusal{401, "this is not the token: kymo web prints the address with it"};
  }
  if (knock.changes_state && knock.origin.empty()) {
    return Refusal{403, "what changes something needs an Origin that is this address"};
  }
  return std::nullopt;
}

}  // namespace kymo::http
