#include "daemon/config/otlp_endpoint.h"

#include <algorithm>

namespace kymo::daemon {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kDefaultPort = ":4318";
constexpr std::string_view kDefaultPath = "/v1/traces";

}  // namespace

Result<OtlpEndpoint> parse_otlp_endpoint(std::string_view url) {
  const Error wanted{Code::invalid_argument,
                     "--otlp-endpoint " + std::string(url) +
                         ": wanted http://HOST[:PORT][/PATH], such as http://127.0.0.1:4318"};
  const bool plain = std::all_of(url.begin(), url.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '?' && c != '#' && c != '@';
  });
  if (!plain || url.substr(0, kScheme.size()) != kScheme) return wanted;
  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(slash);
  std::string host(rest.substr(0, slash));
  const std::size_t bracket = host.rfind(']');  // the end of an IPv6 address, which has colons
  if (host.find(':', bracket == std::string::npos ? 0 : bracket) == std::string::npos) {
    host += kDefaultPort;
  }
  const Result<HostPort> at = parse_host_port(host);
  if (!at || at->port == 0) return wanted;
  return OtlpEndpoint{*at, std::string(path.size() <= 1 ? kDefaultPath : path)};
}

}  // namespace kymo::daemon
