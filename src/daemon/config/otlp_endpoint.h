#pragma once

#include <string>
#include <string_view>

#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The address to which spans are sent.
struct OtlpEndpoint {
  HostPort at;
  std::string path;
};
// Parses http://HOST[:PORT][/PATH]. The default port is 4318, the default path /v1/traces.
// Errors: invalid_argument; the message says what is allowed.
Result<OtlpEndpoint> parse_otlp_endpoint(std::string_view url);

}  // namespace kymo::daemon
