#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kymo::http {

// The parts of a request's head that the server uses.
struct Head {
  int refused = 0;  // the HTTP status that refuses it; 0: the head is valid
  std::string method;
  std::string path;                          // decoded
  std::map<std::string, std::string> query;  // decoded; if a name occurs twice, the last value
  std::string host;
  std::string origin;
  std::string authorization;

  bool operator==(const Head&) const = default;
};

// Reads the head of a request that Framing accepted, with the parser of Boost.Beast. Ignores the
// body.
Head read_head(std::string_view request);

// The head as JSON, for another process. Bytes that are no UTF-8 become U+FFFD.
std::string json_of(const Head& head);
// Reads the JSON of json_of(). Returns nothing if the text is no such JSON.
std::optional<Head> head_in(std::string_view json);

}  // namespace kymo::http
