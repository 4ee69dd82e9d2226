#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kymo::http {

// What a request asks for, and what tells who asks: all of its head that we look at.
struct Head {
  int refused = 0;  // the HTTP status that refuses it; 0: it was understood
  std::string method;
  std::string path;                          // decoded
  std::map<std::string, std::string> query;  // decoded; of a name that stands twice, the last
  std::string host;
  std::string origin;
  std::string authorization;

  bool operator==(const Head&) const = default;
};

// Reads the head of a request that Framing let in, by the HTTP library. Its body is not looked at,
// nor what would have the library do more than read: Range, encodings, the length of a body.
Head read_head(std::string_view request);

// As JSON, so that another process can read it; what is no UTF-8 becomes U+FFFD.
std::string json_of(const Head& head);
// None: the text is no such JSON.
std::optional<Head> head_in(std::string_view json);

}  // namespace kymo::http
